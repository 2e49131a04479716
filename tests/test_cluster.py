"""Sweeps on a cluster of dask.distributed: the same bytes, whatever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="pip install 'gpusim[dask]'")

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "GPUSIM_CODE": "lowering"}
SWEEP = ["sweep", "reduce1", "reduce3", "reduce6", "--block", "64..512", "-n", "2^16"]


def started(*arguments: object, **settings: Any) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.Popen(words, env=ENVIRONMENT, text=True, **settings)


def swept(output: Path, *options: object) -> str:
    run = started("gpusim", *SWEEP, "--no-cache", "--out", output, *options, stderr=subprocess.PIPE)
    _, err = run.communicate(timeout=300)
    assert (run.returncode, err) == (0, "")
    return output.read_text()


def test_a_local_cluster_gives_the_bytes_of_one_process(tmp_path: Path) -> None:
    alone = swept(tmp_path / "alone.csv", "--workers", 1)
    assert swept(tmp_path / "cluster.csv", "--dask", "local", "--workers", 2) == alone


def test_a_scheduler_that_is_not_there_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gpusim.cli.app import main
    from gpusim.host import cluster

    monkeypatch.setattr(cluster, "CONNECTING_S", 0.5)
    options = ["--no-cache", "--dask", "tcp://127.0.0.1:1"]
    assert main([*SWEEP, *options]) == 2
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in capsys.readouterr().err


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, Callable[[], subprocess.Popen[str]]]]:
    """The address of a scheduler, and what starts a worker of it."""
    processes = []
    file = tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    def begin(*words: object) -> subprocess.Popen[str]:
        options = ["--scheduler-file", file, "--no-dashboard"]
        processes.append(started("distributed.cli." + str(words[0]), *options, *words[1:], **quiet))
        return processes[-1]

    begin("dask_scheduler", "--port", "0")
    while not file.exists():
        time.sleep(0.1)
    import json

    yield (
        json.loads(file.read_text())["address"],
        lambda: begin("dask_worker", "--nthreads", "1", "--no-nanny"),
    )
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_killed_workers_and_clients_lose_nothing(
    tmp_path: Path, cluster: tuple[str, Callable[[], subprocess.Popen[str]]]
) -> None:
    alone = swept(tmp_path / "alone.csv", "--workers", 1)
    address, add_worker = cluster
    first = add_worker()
    output = tmp_path / "cluster.csv"
    options = ["--no-cache", "--out", output, "--dask", address]
    journal = tmp_path / "cluster.csv.journal"
    client = started("gpusim", *SWEEP, *options)
    while not journal.exists() or journal.read_bytes().count(b"\n") < 2:
        time.sleep(0.05)
    add_worker()
    first.send_signal(signal.SIGKILL)
    while journal.read_bytes().count(b"\n") < 4:
        time.sleep(0.05)
    client.send_signal(signal.SIGKILL)
    client.wait()
    assert swept(output, "--dask", address) == alone
