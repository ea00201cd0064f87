"""Scores finished runs: label agreement, recall and precision of findings, and how sure these figures are.

Pure. Only runs that count are scored; refused ones stand beside the figures with their reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from random import Random
from statistics import NormalDist

from sam2_mcp_worker.evaluation.case_files import Case
from sam2_mcp_worker.evaluation.runs import Observed, RunRecord, plain

CONFIDENCE = 0.95
# The bounds of a 95 % interval then rest on 50 samples each.
RESAMPLES = 2000
NO_LABEL = "no label"


@dataclass(frozen=True, slots=True)
class Rate:
    """`hits` of `total`, and the bounds between which the true share lies with 95 % confidence."""

    hits: int
    total: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """The share itself."""
        return self.hits / self.total


@dataclass(frozen=True, slots=True)
class FindingScore:
    """How often one expected finding was found."""

    kind: str
    about: str
    optional: bool
    found: Rate | None


@dataclass(frozen=True, slots=True)
class FalseFinding:
    """What `runs` runs found and nobody expected."""

    kind: str
    about: str
    runs: int


@dataclass(frozen=True, slots=True)
class Confused:
    """`runs` runs gave one label where another, or the same, was expected."""

    expected: str
    given: str
    runs: int


@dataclass(frozen=True, slots=True)
class CaseScore:
    """One case over its repeats. `steady` is the share of its runs that gave its most frequent label.

    `unlisted` runs were asked for findings and listed none that could be read, so that they are in no figure of them.
    """

    id: str
    expected: str | None
    attempts: int
    scored: int
    refused: Mapping[str, int]
    labels: Mapping[str, int]
    agreement: Rate | None
    steady: float | None
    recall: Rate | None
    precision: Rate | None
    findings: tuple[FindingScore, ...]
    false: tuple[FalseFinding, ...]
    undone: int
    unlisted: int


@dataclass(frozen=True, slots=True)
class Score:
    """Everything. `refused` counts runs by the code of their refusal."""

    cases: tuple[CaseScore, ...]
    attempts: int
    scored: int
    refused: Mapping[str, int]
    agreement: Rate | None
    recall: Rate | None
    precision: Rate | None
    confusion: tuple[Confused, ...]

    @property
    def whole(self) -> bool:
        """Whether every run counts."""
        return self.attempts > 0 and self.scored == self.attempts

    @property
    def flawless(self) -> bool:
        """Whether every run counts and said what was expected, no more and no less."""
        rates = (self.agreement, self.recall, self.precision)
        listed = not any(case.unlisted for case in self.cases)
        return self.whole and listed and all(rate is None or rate.hits == rate.total for rate in rates)


@dataclass(slots=True)
class _Tally:
    """Hits and totals of one case, run by run."""

    recall: list[tuple[int, int]] = field(default_factory=list)
    precision: list[tuple[int, int]] = field(default_factory=list)
    agreement: list[tuple[int, int]] = field(default_factory=list)
    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    false: Counter[Observed] = field(default_factory=Counter)
    listed: int = 0


def score(cases: Sequence[Case], runs: Iterable[RunRecord]) -> Score:
    """Score all runs of the cases; runs of other cases are not looked at."""
    by_case: dict[str, list[RunRecord]] = {case.id: [] for case in cases}
    for run in runs:
        if run.case in by_case:
            by_case[run.case].append(run)
    tallies = {case.id: _tally(case, by_case[case.id]) for case in cases}
    all_runs = [run for group in by_case.values() for run in group]
    counted = list(tallies.values())
    return Score(
        tuple(_case_score(case, by_case[case.id], tallies[case.id]) for case in cases),
        len(all_runs),
        sum(run.counts for run in all_runs),
        dict(Counter(run.code for run in all_runs if not run.counts)),
        rate([tally.agreement for tally in counted]),
        rate([tally.recall for tally in counted]),
        rate([tally.precision for tally in counted]),
        _confusion(cases, by_case),
    )


def _confusion(cases: Sequence[Case], by_case: Mapping[str, Sequence[RunRecord]]) -> tuple[Confused, ...]:
    pairs = Counter(
        (str(case.label), run.label or NO_LABEL)
        for case in cases
        for run in by_case[case.id]
        if case.label is not None and run.counts
    )
    return tuple(Confused(expected, given, count) for (expected, given), count in sorted(pairs.items()))


def _tally(case: Case, runs: Sequence[RunRecord]) -> _Tally:
    tally = _Tally()
    for run in runs:
        if not run.counts:
            continue
        if case.label is not None:
            tally.agreement.append((int(run.label == case.label), 1))
        if run.findings is None:
            continue
        tally.listed += 1
        matched, false = match(case, run.findings)
        required = {pair for finding in case.findings if not finding.optional for pair in finding.each()}
        hits = len(matched & required)
        tally.found.update(matched)
        tally.false.update(false)
        tally.recall.append((hits, len(required)))
        tally.precision.append((hits, hits + len(false)))
    return tally


def match(case: Case, found: Sequence[Observed]) -> tuple[set[tuple[str, str]], list[Observed]]:
    """Expected findings that were found, and found ones that nobody expected; one stands for one, exact ones first."""
    left = list(found)
    matched: set[tuple[str, str]] = set()
    for contains in (False, True):
        for expected in case.findings:
            if (expected.match == "contains") is not contains:
                continue
            for kind, about in expected.each():
                hit = next((one for one in left if one.kind == kind and _same(about, one.about, contains)), None)
                if hit is not None:
                    left.remove(hit)
                    matched.add((kind, about))
    return matched, left


def _same(expected: str, found: str, contains: bool) -> bool:
    return plain(expected) in plain(found) if contains else plain(expected) == plain(found)


def _case_score(case: Case, runs: Sequence[RunRecord], tally: _Tally) -> CaseScore:
    counted = [run for run in runs if run.counts]
    labels = Counter(run.label or NO_LABEL for run in counted)
    return CaseScore(
        case.id,
        case.label,
        len(runs),
        len(counted),
        dict(Counter(run.code for run in runs if not run.counts)),
        dict(labels),
        rate([tally.agreement]),
        max(labels.values()) / len(counted) if counted else None,
        rate([tally.recall]),
        rate([tally.precision]),
        tuple(
            FindingScore(kind, about, finding.optional, rate([[(tally.found[(kind, about)], tally.listed)]]))
            for finding in case.findings
            for kind, about in finding.each()
        ),
        tuple(FalseFinding(one.kind, one.about, count) for one, count in sorted(tally.false.items())),
        sum(bool(run.undone) for run in counted),
        sum(run.findings is None for run in counted) if case.findings or not case.calls else 0,
    )


def wilson(hits: int, total: int) -> tuple[float, float]:
    """The score interval of Wilson (1927) for a share; it never collapses to a point, not even at 0 and 1."""
    z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
    share = hits / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    spread = z / (1 + z * z / total) * sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    # The share lies inside by definition; rounding may say otherwise at 0 and 1.
    return max(0.0, min(share, middle - spread)), min(1.0, max(share, middle + spread))


def rate(groups: Sequence[Sequence[tuple[int, int]]]) -> Rate | None:
    """A share over cases and their runs, each run with hits and total; None where there is nothing to count.

    Findings of one run and repeats of one case are no independent trials. Where runs differ the interval is the wider,
    on each side, of Wilson's over all counts and of a bootstrap that draws whole cases, then runs of them; its random
    numbers are always the same. Where they do not, nothing can be drawn: it is Wilson's over the cases, of one case
    over its runs.
    """
    groups = [runs for group in groups if (runs := [run for run in group if run[1]])]
    hits, total = sum(run[0] for group in groups for run in group), sum(run[1] for group in groups for run in group)
    if not total:
        return None
    low, high = wilson(hits, total)
    if hits in (0, total):
        trials = len(groups) if len(groups) > 1 else len(groups[0])
        low, high = wilson(trials if hits else 0, trials)
    else:
        random = Random(total)  # noqa: S311 (no secret)
        drawn = sorted(_resampled(groups, random) for _ in range(RESAMPLES))
        cut = round(RESAMPLES * (1 - CONFIDENCE) / 2)
        low, high = min(low, drawn[cut]), max(high, drawn[-cut - 1])
    return Rate(hits, total, low, high)


def _resampled(groups: Sequence[Sequence[tuple[int, int]]], random: Random) -> float:
    hits = total = 0
    for group in random.choices(groups, k=len(groups)):
        for run_hits, run_total in random.choices(group, k=len(group)):
            hits += run_hits
            total += run_total
    return hits / total
