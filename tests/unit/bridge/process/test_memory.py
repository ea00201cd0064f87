"""What the allocators are told, in a process of its own because it holds for the whole process."""

import json
import subprocess
import sys

import pytest
from tests.fakes.upstream import FakeUpstream

from sam2_mcp_bridge.process.memory import TRIM_AFTER_S, Trimmer

# A large block, and above it in the heap a small one that stays: the heap cannot shrink under it.
LARGE_BLOCKS = """
import re, sys
from pathlib import Path
def private_mb():
    text = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    return sum(int(kb) for kb in re.findall(r"^Private_\\w+: +(\\d+) kB", text, re.MULTILINE)) / 1024
if sys.argv[1] == "settled":
    from sam2_mcp_bridge.process import memory
    memory.settle()
bytes(20_000_000)  # after this one is freed, glibc would serve the next ones from the heap
before, kept = private_mb(), []
for _ in range(4):
    block = b"x" * 10_000_000
    kept.append(b"y" * 1000)
    del block
print(private_mb() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_large_blocks_go_back_to_the_system() -> None:
    def grown_mb(how: str) -> float:
        command = [sys.executable, "-c", LARGE_BLOCKS, how]
        return float(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)

    assert grown_mb("settled") < 1
    assert grown_mb("as usual") > 5  # or the test would show nothing


def test_a_finished_exchange_leaves_nothing_to_the_garbage_collector() -> None:
    """A cycle would hold the body of its request until a full collection, which may be a hundred calls later."""
    code = """
import gc, sys, time
from sam2_mcp_bridge import config
from sam2_mcp_bridge.upstream import upstream
from sam2_mcp_bridge.transport.transport import Exchange
to = upstream.Upstream(config.Config(url=sys.argv[1]))
def call():
    to.request(Exchange(time.monotonic() + 20), "tools/call", {"name": "echo", "arguments": {}})
call()
gc.collect()
gc.disable()
for _ in range(5):
    call()
print(gc.collect())
"""
    with FakeUpstream() as fake:
        command = [sys.executable, "-c", code, fake.url]
        assert int(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout) == 0


def test_a_libc_without_these_settings_is_left_alone() -> None:
    code = """
import ctypes, gc, json
ctypes.CDLL = lambda name: object()
from sam2_mcp_bridge.process import memory
memory.settle()
print(json.dumps(gc.get_freeze_count() > 0))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) is True


def test_the_heap_is_trimmed_once_some_seconds_after_work() -> None:
    trimmed: list[int] = []
    trimmer = Trimmer()
    trimmer._trim = trimmed.append
    trimmer.clock_moved(1.0)
    trimmer.worked(2.0)
    trimmer.worked(3.0)
    trimmer.clock_moved(2.0 + TRIM_AFTER_S - 0.1)
    assert trimmed == [] and trimmer.due_s == 2.0 + TRIM_AFTER_S
    trimmer.clock_moved(2.0 + TRIM_AFTER_S)
    trimmer.clock_moved(1000.0)
    assert len(trimmed) == 1 and trimmer.due_s is None


FREED_BETWEEN = """
import time
from pathlib import Path
from sam2_mcp_bridge.process.memory import TRIM_AFTER_S, Trimmer
def resident_mb():
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) / 256
trimmer = Trimmer()
blocks = [bytes(2000) for _ in range(10_000)]
last = bytes(2000)
del blocks
before = resident_mb()
trimmer.clock_moved(1.0)
trimmer.worked(2.0)
trimmer.worked(3.0)
assert trimmer.due_s == 2.0 + TRIM_AFTER_S and before - resident_mb() < 1
trimmer.clock_moved(trimmer.due_s)
assert trimmer.due_s is None
print(before - resident_mb())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_blocks_that_were_freed_between_others_go_back_to_the_system() -> None:
    command = [sys.executable, "-c", FREED_BETWEEN]
    assert float(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout) > 10
