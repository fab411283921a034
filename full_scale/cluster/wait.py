"""`python -m full_scale.cluster.wait NODES`: return when so many nodes have joined the cluster."""

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

    end = time.monotonic() + seconds
    while True:
        try:
            ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
            break
        except ConnectionError:
            if time.monotonic() > end:
                return _failed(0, nodes, seconds)
            time.sleep(1)
    try:
        while (alive := sum(node["Alive"] for node in ray.nodes())) < nodes:
            if time.monotonic() > end:
                return _failed(alive, nodes, seconds)
            time.sleep(1)
    finally:
        ray.shutdown()
    return 0


def _failed(alive: int, nodes: int, seconds: float) -> int:
    sys.stderr.write(
        f"{alive} of {nodes} nodes joined within {seconds:g} s: see the others' output, and whether "
        "they reach this one's port\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(wait(int(sys.argv[1])))
