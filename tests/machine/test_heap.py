"""Memory that arrays leave behind: the next ones get it without asking the system."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Four arrays of 2 MB at a time have 2,048 pages, which come anew where they are given back.
PAGES = """
import resource
import numpy as np
from gpusim.machine.host_allocator import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def make():
    [np.ones(1 << 21, dtype=np.uint8) for _ in range(4)]

keep_freed_memory()
make()
before = faults()
for _ in range(10):
    make()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="others give memory back differently")
def test_arrays_that_are_made_again_and_again_take_no_new_pages() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PAGES], check=True, capture_output=True, text=True, timeout=60
    )
    assert int(done.stdout) < 2048
