"""Reads label and findings out of tool results, by rules that are data. Knows no tool's code, only field names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sam2_mcp_worker.checks.verdict import SEVERITY
from sam2_mcp_worker.evaluation.case_files import ObserveRule
from sam2_mcp_worker.evaluation.runs import Observed, plain, unique

OPEN = ("not_met", "review", "cannot_tell")
# For calls that say nothing else. Pages and areas that nobody could read are findings about the reading.
RULES: dict[str, tuple[ObserveRule, ...]] = {
    "inspect_pdf": (
        ObserveRule(each="pages", kind="page_{source}", about="{page_number}", where={"status": ["done"]}),
        ObserveRule(each="pages", kind="page_failed", about="{page_number}", where={"status": ["failed"]}),
    ),
    "check_phrases": (
        ObserveRule(
            each="phrases",
            kind="phrase_{state}",
            about="{rule|phrase}",
            # One without a verdict is not needed in this document.
            where={"state": ["altered", "missing", "review", "cannot_tell"], "verdict": list(OPEN)},
        ),
        ObserveRule(each="rules", kind="{kind}", about="{rule}", where={"verdict": ["not_met"]}),
        ObserveRule(
            each="rules", kind="{kind}_{verdict}", about="{rule}", where={"verdict": ["review", "cannot_tell"]}
        ),
    ),
    "check_figures": (
        ObserveRule(each="figures", kind="figure_{state}", about="{text}", where={"state": ["mismatch"]}),
    ),
}
# Their verdicts are as of what was read so far: what they say while the reading goes on is not what they found.
AS_OF_NOW = ("check_phrases", "check_figures")
FIELD = re.compile(r"\{([a-z_|]+)\}")


def settled(tool: str, results: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The results of one call that count: all, or those that rest on the same reading as the last one."""
    if tool not in AS_OF_NOW:
        return list(results)
    return [facts for facts in results if facts.get("coverage") == results[-1].get("coverage")]


def observed(rules: Sequence[ObserveRule], results: Sequence[Mapping[str, Any]]) -> tuple[Observed, ...]:
    """Findings of all results of one call, each once."""
    return unique(finding for facts in results for rule in rules for finding in _of_rule(rule, facts))


def _of_rule(rule: ObserveRule, facts: Mapping[str, Any]) -> Iterator[Observed]:
    for item in _items(facts, rule.each):
        if any(item.get(field) not in values for field, values in rule.where.items()):
            continue
        fields = {name: value for name, value in item.items() if isinstance(value, str | int | float)}
        if not rule.words:
            yield _finding(rule, fields)
        held = plain(str(item.get(rule.text) or ""))
        for word in rule.words:
            if plain(word) in held:
                yield _finding(rule, fields | {"word": word})


def _finding(rule: ObserveRule, fields: Mapping[str, Any]) -> Observed:
    return Observed(_filled(rule.kind, fields), _filled(rule.about, fields))


def _filled(template: str, fields: Mapping[str, Any]) -> str:
    """`{a|b}` is the first of the fields that is there; one that is not stays as it is written."""

    def value(found: re.Match[str]) -> str:
        return str(next((fields[name] for name in found[1].split("|") if name in fields), found[0]))

    return FIELD.sub(value, template)


def _items(facts: Any, path: str) -> Iterator[Mapping[str, Any]]:
    """Objects of the list at a dotted path; lists on the way are gone through."""
    values = [facts]
    for part in path.split("."):
        below = [value.get(part) for value in values if isinstance(value, Mapping)]
        values = [item for value in below for item in (value if isinstance(value, list) else [value])]
    yield from (value for value in values if isinstance(value, Mapping))


def label_in(facts: Mapping[str, Any]) -> str | None:
    """What a result ends with, if it ends with a label."""
    label = facts.get("label")
    label = label.get("label") if isinstance(label, Mapping) else label
    return label if isinstance(label, str) else None


def most_severe(labels: Sequence[str]) -> str | None:
    """The label of a whole from those of its parts; an unknown one is kept, so that it is seen to disagree."""
    return max(labels, key=lambda label: SEVERITY.index(label) if label in SEVERITY else len(SEVERITY), default=None)


def undone_in(tool: str, facts: Mapping[str, Any]) -> Iterator[str]:
    """What the last result of a call says that nobody did."""
    coverage = facts.get("coverage")
    for name in ("failed", "unreached"):
        if isinstance(coverage, Mapping) and coverage.get(name):
            yield f"{tool}: {len(coverage[name])} {name} of {coverage.get('total')}"
    if unread := facts.get("unread"):
        yield f"{tool}: not read: {unread if isinstance(unread, str) else '; '.join(map(str, unread))}"
    if facts.get("cursor"):
        yield f"{tool}: there was still a cursor"
