"""Sweeps on a cluster of dask.distributed: the same bytes, whatever is killed."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpusim.host.journal import entry

# An import takes 1.3 s, in each process that collects tests.
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="pip install 'gpusim[dask]'"
)

ROOT = Path(__file__).parents[1]
PATIENCE_S = 900  # on a busy machine
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "GPUSIM_CODE": "lowering"}
SWEEP = ["sweep", "reduce1", "reduce3", "reduce6", "--block", "64..512", "-n", "2^16"]


def started(*arguments: object, **settings: Any) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.Popen(words, env=ENVIRONMENT, text=True, **settings)


def swept(output: Path, *options: object) -> str:
    run = started("gpusim", *SWEEP, "--no-cache", "--out", output, *options, stderr=subprocess.PIPE)
    _, err = run.communicate(timeout=PATIENCE_S)
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


QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Cluster:
    """A scheduler and its workers, each a process that may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "scheduler.json"
        self.workers: list[subprocess.Popen[str]] = []
        self.scheduler = self._begin("dask_scheduler", "--port", "0")
        while not self._file.exists():
            time.sleep(0.1)
        self.address: str = json.loads(self._file.read_text())["address"]

    def _begin(self, name: str, *words: object) -> subprocess.Popen[str]:
        options = ["--scheduler-file", self._file, "--no-dashboard"]
        return started(f"distributed.cli.{name}", *options, *words, **QUIET)

    def add_worker(self) -> subprocess.Popen[str]:
        """Start another worker."""
        self.workers.append(self._begin("dask_worker", "--nthreads", "1", "--no-nanny"))
        return self.workers[-1]

    def end(self) -> None:
        """Kill all that is left."""
        for process in (*self.workers, self.scheduler):
            killed(process)
        self._file.unlink(missing_ok=True)


def killed(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.end()


@pytest.mark.slow
def test_killed_workers_and_clients_lose_nothing(tmp_path: Path, cluster: Cluster) -> None:
    alone = swept(tmp_path / "alone.csv", "--workers", 1)
    first = cluster.add_worker()
    output = tmp_path / "cluster.csv"
    options = ["--no-cache", "--out", output, "--dask", cluster.address]
    journal = tmp_path / "cluster.csv.journal"
    client = started("gpusim", *SWEEP, *options)
    while not journal.exists() or journal.read_bytes().count(b"\n") < 2:
        time.sleep(0.05)
    cluster.add_worker()
    killed(first)
    while journal.read_bytes().count(b"\n") < 4:
        time.sleep(0.05)
    killed(client)
    assert swept(output, "--dask", cluster.address) == alone


@pytest.mark.slow
def test_a_killed_scheduler_is_a_sentence_and_the_sweep_goes_on_with_another(
    tmp_path: Path, cluster: Cluster
) -> None:
    alone = swept(tmp_path / "alone.csv", "--workers", 1)
    cluster.add_worker()
    output, journal = tmp_path / "cluster.csv", tmp_path / "cluster.csv.journal"
    words = ["gpusim", *SWEEP, "--no-cache", "--out", output, "--dask", cluster.address]
    client = started(*words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while not journal.exists() or journal.read_bytes().count(b"\n") < 2:
        time.sleep(0.02)
    killed(cluster.scheduler)
    _, err = client.communicate(timeout=PATIENCE_S)
    assert (client.returncode, err.count("\n")) == (2, 1), err
    assert f"the Dask scheduler at {cluster.address} is gone" in err
    assert len(keys_of(journal)) >= 2
    assert swept(output, "--workers", 1) == alone


def keys_of(journal: Path) -> list[str]:
    """Return the keys of the whole lines of a journal, each of which must be undamaged."""
    if not journal.exists():
        return []
    lines = journal.read_bytes().split(b"\n")[:-1]
    held = [entry(line) for line in lines]
    assert all(held), "a damaged line"
    return [one[0] for one in held if one is not None]


def workers_of(client: int) -> list[int]:
    """Return the processes of a process pool that a client has started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            is_child = int(status.read_text().rpartition(")")[2].split()[1]) == client
            if is_child and b"spawn_main" in (status.parent / "cmdline").read_bytes():
                found.append(int(status.parent.name))
    return found


VICTIMS = ("client", "worker", "scheduler", "pool's client", "pool's worker")
KILLS, SEED = 30, int(os.environ.get("GPUSIM_FUZZ_SEED", "33"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_kills_at_any_time_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    """A seed gives the victims' times; a sweep that ends before its kill begins anew."""
    chance = random.Random(SEED)
    alone = swept(tmp_path / "alone.csv", "--workers", 1)
    output, journal = tmp_path / "table.csv", tmp_path / "table.csv.journal"
    kept: list[str] = []
    cluster = Cluster(tmp_path)
    took = {False: 8.0, True: 8.0}  # seconds of a whole sweep, by whether it is the pool's
    ended = 0
    try:
        for number in range(KILLS):
            victim = VICTIMS[number % len(VICTIMS)]
            is_pool = victim.startswith("pool")
            while not is_pool and sum(one.poll() is None for one in cluster.workers) < 2:
                cluster.add_worker()
            where = ["--workers", 2] if is_pool else ["--dask", cluster.address]
            words = ["gpusim", *SWEEP, "--no-cache", "--out", output, *where]
            began = time.monotonic()
            client = started(*words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            time.sleep(chance.uniform(0.2, took[is_pool]))
            if victim.endswith("client"):
                client.send_signal(signal.SIGKILL)
            elif victim == "worker":
                killed(cluster.workers[-1])
            elif victim == "scheduler":
                killed(cluster.scheduler)
            else:
                for worker in workers_of(client.pid)[:1]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(worker, signal.SIGKILL)
            _, err = client.communicate(timeout=PATIENCE_S)
            print(number, victim, client.returncode, err.strip()[:120], flush=True)
            if victim == "scheduler":
                cluster.end()
                cluster = Cluster(tmp_path)
            now = keys_of(journal)
            if client.returncode == 0:
                assert output.read_text() == alone
                took[is_pool] = max(3.0, time.monotonic() - began)
                output.unlink()
                kept, ended = [], ended + 1
                continue
            said = {
                "scheduler": ("no Dask scheduler answers at", "scheduler at"),
                "pool's worker": ("a worker process was killed", "no worker process"),
            }
            if victim in said:
                assert client.returncode == 2
                assert any(words in err for words in said[victim]), err
                assert "Traceback" not in err
            else:
                assert client.returncode == -signal.SIGKILL, err
            assert len(set(now)) == len(now), "a row twice"
            assert now[: len(kept)] == kept, "a finished row is lost"
            kept = now
        assert swept(output, "--workers", 1) == alone
        assert ended < KILLS, "no kill came in time"
    finally:
        cluster.end()
