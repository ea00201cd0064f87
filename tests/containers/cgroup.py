"""What the kernel says about a container's memory and processes, read from outside: a look costs the container nothing.

Control groups of version 1 and 2. Everything in bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.containers.engine import docker

ROOT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Process:
    """`private_bytes` is what ends with the process; `pss_bytes` adds its share of what others use too."""

    pid: int
    command: str
    threads: int
    private_bytes: int
    anonymous_bytes: int
    pss_bytes: int
    rss_bytes: int
    oom_score: int

    @property
    def is_bridge(self) -> bool:
        return "sam2_mcp_bridge" in self.command or "sam2-mcp-bridge.pyz" in self.command


class Cgroup:
    """The control group of a running container; a new one after each of its starts."""

    def __init__(self, container: str) -> None:
        pid = docker("inspect", "--format", "{{.State.Pid}}", container)
        groups = Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii")
        if found := re.search(r"^\d+:memory:(.+)$", groups, re.MULTILINE):
            self._memory = ROOT / "memory" / found[1].lstrip("/")
            self._names = ("memory.usage_in_bytes", "memory.limit_in_bytes", "memory.oom_control")
        else:
            found = re.search(r"^0::(.+)$", groups, re.MULTILINE)
            assert found, groups
            self._memory = ROOT / found[1].lstrip("/")
            self._names = ("memory.current", "memory.max", "memory.events")

    def usage_bytes(self) -> int:
        return int(self._read(self._names[0]))

    def limit_bytes(self) -> int:
        return int(self._read(self._names[1]))

    def swap_bytes(self) -> int:
        """What has been swapped out; 0 also where the kernel has no swap to count."""
        found = re.search(r"^(?:swap|total_swap) (\d+)$", self._read("memory.stat"), re.MULTILINE)
        return int(found[1]) if found else 0

    def oom_kills(self) -> int:
        found = re.search(r"^oom_kill (\d+)$", self._read(self._names[2]), re.MULTILINE)
        assert found, "the kernel does not count its kills"
        return int(found[1])

    def processes(self) -> list[Process]:
        pids = [int(line) for line in self._read("cgroup.procs").split()]
        return [process for pid in pids if (process := _process(pid))]

    def bridges(self) -> list[Process]:
        return [process for process in self.processes() if process.is_bridge]

    def _read(self, name: str) -> str:
        return (self._memory / name).read_text(encoding="ascii")


def _process(pid: int) -> Process | None:
    folder = Path(f"/proc/{pid}")
    try:
        rollup = (folder / "smaps_rollup").read_text(encoding="ascii")
        status = (folder / "status").read_text(encoding="utf-8")
        command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        score = int((folder / "oom_score_adj").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None  # it has just ended

    def kilobytes(name: str, text: str = rollup) -> int:
        return sum(int(number) for number in re.findall(rf"^{name}:\s+(\d+)", text, re.MULTILINE)) * 1024

    return Process(
        pid=pid,
        command=command,
        threads=kilobytes("Threads", status) // 1024,
        private_bytes=kilobytes("Private_(?:Clean|Dirty)"),
        anonymous_bytes=kilobytes("Anonymous"),
        pss_bytes=kilobytes("Pss"),
        rss_bytes=kilobytes("Rss"),
        oom_score=score,
    )
