"""Runs engine_run.py in 1, 2 or 4 processes and reads what it saved."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
CPU = {
    "VERL_PLATFORM": "cpu",
    "VERL_USE_EXTERNAL_MODULES": "full_scale.cpu_support.register,full_scale.verl_plugin",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "VERL_LOGGING_LEVEL": "ERROR",
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(model, folder, world, settings):
    """Results by name: arrays as saved, or `error`, the exception of the engine."""
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(settings))
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(world)}
    command = [sys.executable, HERE / "engine_run.py", model, folder / "settings.json", folder]
    logs = [(folder / f"rank_{rank}.log").open("w") for rank in range(world)]
    processes = [
        subprocess.Popen(
            command, env=os.environ | CPU | place | {"RANK": str(rank)}, stdout=log, stderr=log
        )
        for rank, log in enumerate(logs)
    ]
    codes = [process.wait(timeout=300) for process in processes]
    for log in logs:
        log.close()
    if any(codes):
        tail = "\n".join(Path(log.name).read_text()[-3000:] for log in logs)
        raise AssertionError(f"ranks ended with {codes}:\n{tail}")
    results = {}
    for each in settings:
        with np.load(folder / f"{each['name']}.npz") as arrays:
            results[each["name"]] = dict(arrays)
    return results
