"""`python -m full_scale.cluster.wait NODES`: return when so many nodes have joined the cluster."""

import os
import socket
import sys
import time

SECONDS = 600.0
"""Nodes of one job start within minutes of each other, or something is wrong."""


def wait(nodes: int, seconds: float = SECONDS) -> int:
    """Wait for the nodes of the ray cluster at RAY_ADDRESS.

    Args:
        nodes: how many.
        seconds: how long at most.

    Returns:
        0 if they are there, else 1, with a line on standard error.
    """
    import ray

    address, end = os.environ["RAY_ADDRESS"], time.monotonic() + seconds
    # ray itself would try for many minutes.
    while not _listens(address):
        if time.monotonic() > end:
            return _failed(0, nodes, seconds)
        time.sleep(1)
    ray.init(address, log_to_driver=False, logging_level="ERROR")
    try:
        while (alive := sum(node["Alive"] for node in ray.nodes())) < nodes:
            if time.monotonic() > end:
                return _failed(alive, nodes, seconds)
            time.sleep(1)
    finally:
        ray.shutdown()
    return 0


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=5):
            return True
    except OSError:
        return False


def _failed(alive: int, nodes: int, seconds: float) -> int:
    sys.stderr.write(
        f"{alive} of {nodes} nodes joined within {seconds:g} s: see the output of the others, and "
        "whether they reach the port of this one\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(wait(int(sys.argv[1])))
