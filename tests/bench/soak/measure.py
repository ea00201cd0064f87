"""What a process holds: memory, descriptors, threads; and whether that has grown. Linux only: read from /proc."""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass
from pathlib import Path

MIB = 2**20


@dataclass(frozen=True)
class Sample:
    at_s: float
    rss_mb: float
    pss_mb: float
    descriptors: int
    threads: int


def sample(pid: int, at_s: float) -> Sample:
    """Raises OSError where the process has ended."""
    process = Path(f"/proc/{pid}")
    text = (process / "smaps_rollup").read_text(encoding="ascii")
    rss_kb, pss_kb = (int(found) for found in re.findall(r"^(?:Rss|Pss):\s+(\d+) kB", text, re.MULTILINE))
    descriptors, threads = (sum(1 for _ in (process / kind).iterdir()) for kind in ("fd", "task"))
    return Sample(at_s, rss_kb / 1024, pss_kb / 1024, descriptors, threads)


def peak_rss_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    assert found
    return int(found[1]) / 1024


@dataclass(frozen=True)
class Growth:
    """Medians in MB of the first and of the last tenth of the samples, and the slope of all of them."""

    first_mb: float
    last_mb: float
    slope_mb_per_h: float

    @property
    def grown_mb(self) -> float:
        return self.last_mb - self.first_mb


def growth(samples: list[Sample]) -> Growth:
    """Of resident memory; at least two samples."""
    tenth = max(1, len(samples) // 10)
    first, last = ([each.rss_mb for each in part] for part in (samples[:tenth], samples[-tenth:]))
    slope = statistics.linear_regression([each.at_s for each in samples], [each.rss_mb for each in samples]).slope
    return Growth(statistics.median(first), statistics.median(last), slope * 3600)
