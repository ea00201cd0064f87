"""What became of phrases whose truth is known, counted, and the bounds it is held against. Judges nothing itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.bench.checks.leaflets import Leaflet

from sam2_mcp_worker.checks.reading import Reading

TRUTHS = ("present", "altered", "absent")
STATES = ("present", "altered", "review", "missing", "cannot_tell")
CLEAN = "OCR, 150 dpi"
ALTERED_FOUND = 0.95
NEVER_PRESENT_UP_TO = 0.30
JUDGE = "judge_phrases"


@dataclass(frozen=True, slots=True)
class Condition:
    """A way in which leaflets are read. `slips` is the share of syllables that are wrong, on purpose."""

    name: str
    read: Callable[[Leaflet], Reading]
    slips: float = 0.0


@dataclass
class Outcome:
    """What became of the phrases of one condition: counts by judge, truth and state, and scores by kind and truth."""

    condition: Condition
    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    scores: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def count(self, judge: str, truth: str, *states: str) -> int:
        """How many phrases of a truth got one of the states; of any state when none is named."""
        return sum(self.counts[judge, truth, state] for state in states or STATES)

    def false_missing(self, judge: str) -> int:
        """Phrases that are there, with other numbers or without, and were called missing."""
        return self.count(judge, "present", "missing") + self.count(judge, "altered", "missing")

    def false_present(self, judge: str) -> int:
        """Phrases that are not there as asked for, and were called present."""
        return self.count(judge, "altered", "present") + self.count(judge, "absent", "present")

    @property
    def altered_found(self) -> float:
        """The share of altered phrases that were called so."""
        return self.count(JUDGE, "altered", "altered") / self.count(JUDGE, "altered")


def short_of(outcome: Outcome) -> list[str]:
    """Which bounds were missed."""
    name, said = outcome.condition.name, []
    if count := outcome.false_missing(JUDGE):
        said.append(f"{name}: {count} phrases that are there were called missing")
    if outcome.condition.slips <= NEVER_PRESENT_UP_TO and (count := outcome.false_present(JUDGE)):
        said.append(f"{name}: {count} phrases that are not there as asked for were called present")
    if name == CLEAN and outcome.altered_found < ALTERED_FOUND:
        said.append(f"{name}: {outcome.altered_found:.1%} of the altered phrases were found")
    return said


def area_under_curve(present: Sequence[float], absent: Sequence[float]) -> float:
    """How often a present phrase scores higher than an absent one (ties count half)."""
    wins = sum((one > other) + (one == other) / 2 for one in present for other in absent)
    return wins / (len(present) * len(absent))
