"""Which process the kernel ends when a container's memory is full: a bridge, not the station above all of them.

The kernel takes the largest process, and that is the station: every session would end with it. So in a container with
a memory limit a bridge asks to be taken first, a starting one before those at work. The score counts in thousandths of
the limit. Linux only; elsewhere, and where no limit is set, nothing is changed.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

SCORE = Path("/proc/self/oom_score_adj")
HIGHEST_SCORE = 1000

# Half of the limit above the station, which grows to 100 MB and more while it hands on large answers.
AT_WORK = 500
# A session that does not fit must not cost an older one its life.
STARTING = 900

# The limit of the container's own control group, version 2 and 1; "max" and 2**63 - 4096 mean that there is none.
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
NO_LIMIT_BYTES = 2**60


class _Rank:
    """The score beside what the runtime has set; never below that, for the kernel refuses it."""

    def __init__(self) -> None:
        self._inherited: int | None = None

    def take(self, extra: int) -> None:
        with suppress(OSError, ValueError):
            if self._inherited is None and any(_is_limit(path) for path in LIMITS):
                self._inherited = int(SCORE.read_text(encoding="ascii"))
            if self._inherited is not None:
                SCORE.write_text(str(min(self._inherited + extra, HIGHEST_SCORE)), encoding="ascii")


_rank = _Rank()


def starting() -> None:
    """Be the first to go: called before the imports, which are most of what a bridge takes."""
    _rank.take(STARTING)


def at_work() -> None:
    """Be as good as the other bridges from here on: called after the first contact upstream, and again at will."""
    _rank.take(AT_WORK)


def _is_limit(path: Path) -> bool:
    with suppress(OSError, ValueError):
        return int(path.read_text(encoding="ascii")) < NO_LIMIT_BYTES
    return False
