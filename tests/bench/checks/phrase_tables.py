"""Tables in Markdown of what became of phrases whose truth is known: by judge, by score, by threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.bench.checks.phrase_outcome import JUDGE, STATES, TRUTHS, Outcome, area_under_curve
from tests.bench.checks.phrase_scores import JUDGES, SCORES, SWEEP, THRESHOLDS


def shown(outcomes: Sequence[Outcome]) -> str:
    """Tables in Markdown: states by truth for each judge, each score's separation, and what thresholds would do."""
    parts = [table for judge in JUDGES for table in ("", f"### {judge}", "", *_states_table(outcomes, judge))]
    parts += ["", "### Separation of present and absent phrases", "", *_separation_table(outcomes)]
    for name, thresholds in (
        ("3-gram coverage", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)),
        ("partial ratio, letters", (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8)),
    ):
        parts += ["", f"### {name} alone: lost / absent / altered", "", *_threshold_table(outcomes, name, thresholds)]
    title = (
        "Both together, one threshold for all phrases: called missing / called present / of what is there for a person"
    )
    parts += ["", f"### {title}", "", *_combination_table(outcomes)]
    return "\n".join(parts)


def _states_table(outcomes: Sequence[Outcome], judge: str) -> Iterator[str]:
    """Of the phrases of each truth how many got which state."""
    states = " / ".join(state.replace("_", " ") for state in STATES)
    yield f"| reading | truth present: {states} | truth altered | truth absent |"
    yield "|---|---|---|---|"
    for outcome in outcomes:
        counts = [" / ".join(str(outcome.count(judge, truth, state)) for state in STATES) for truth in TRUTHS]
        yield f"| {outcome.condition.name} | {' | '.join(counts)} |"


def _separation_table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield "| reading | " + " | ".join(f"{name}: present min / absent max, AUC" for name in SCORES) + " |"
    yield "|---|" + "---|" * len(SCORES)
    for outcome in outcomes:
        cells = []
        for name in SCORES:
            present, absent = outcome.scores[name, "present"], outcome.scores[name, "absent"]
            cells.append(f"{min(present):.2f} / {max(absent):.2f}, {area_under_curve(present, absent):.4f}")
        yield f"| {outcome.condition.name} | {' | '.join(cells)} |"


def _threshold_table(outcomes: Sequence[Outcome], name: str, thresholds: Sequence[float]) -> Iterator[str]:
    """Of each threshold alone: present phrases below, absent ones and altered ones at or above it."""
    yield "| reading | " + " | ".join(f"{threshold:.2f}" for threshold in thresholds) + " |"
    yield "|---|" + "---|" * len(thresholds)
    for outcome in outcomes:
        cells = []
        for threshold in thresholds:
            lost = sum(score < threshold for score in outcome.scores[name, "present"])
            absent, altered = (
                sum(score >= threshold for score in outcome.scores[name, truth]) for truth in ("absent", "altered")
            )
            cells.append(f"{lost} / {absent} / {altered}")
        yield f"| {outcome.condition.name} | {' | '.join(cells)} |"


def _combination_table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Of the judge with one threshold for all phrases, and with each its own."""
    judges = (*SWEEP, JUDGE)
    yield "| reading | " + " | ".join(f"{at:.2f}" for at in THRESHOLDS) + " | each its own |"
    yield "|---|" + "---|" * len(judges)
    for outcome in outcomes:
        cells = []
        for judge in judges:
            person = outcome.count(judge, "present", "review", "cannot_tell")
            cells.append(f"{outcome.false_missing(judge)} / {outcome.false_present(judge)} / {person}")
        yield f"| {outcome.condition.name} | {' | '.join(cells)} |"
