"""What a run of the suite wrote, and what becomes of it beside the baseline.

Pure apart from reading files. The suite's rules are kept: a WARNING counts as a failure, and an expected failure that
did not happen is as wrong as one that was not expected.
"""

import fnmatch
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

FAILING = ("FAILURE", "WARNING")
# The suite repeats itself where a check fails for many messages.
MESSAGE_CHARACTERS = 400
# The suite names its result folders so: server-tools-list-2026-07-28T12-00-00-000Z.
FOLDER = re.compile(r"(?:server-)?(?P<scenario>.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z")
LISTED = re.compile(r"  - (?P<name>\S+) \[(?P<versions>[^\]]*)\]")
ENTRY = re.compile(r"- (?P<key>\S+)\s+# (?P<reason>\S.*)")


class Check(NamedTuple):
    """One check of a scenario: its id, its status in the suite's words, and what the suite said about it."""

    id: str
    status: str
    message: str = ""


Results = dict[str, list[Check]]


def read_results(folder: Path) -> Results:
    """The checks of every scenario below a result folder (`-o` of the suite)."""
    results: Results = {}
    for path in sorted(folder.glob("*/checks.json")):
        match = FOLDER.fullmatch(path.parent.name)
        assert match, path
        entries = json.loads(path.read_text(encoding="utf-8"))
        checks = [Check(entry["id"], entry["status"], _message(entry)) for entry in entries]
        results.setdefault(match["scenario"], []).extend(checks)
    return results


def _message(entry: Mapping[str, object]) -> str:
    details = entry.get("details")
    more = details.get("message", "") if isinstance(details, dict) else ""
    return " ".join(str(entry.get("errorMessage") or more).split())[:MESSAGE_CHARACTERS]


def listed_scenarios(text: str, version: str) -> list[str]:
    """The scenarios of a protocol version, from the output of `conformance list`."""
    found = (LISTED.fullmatch(line.rstrip()) for line in text.splitlines())
    return [match["name"] for match in found if match and version in match["versions"].split(",")]


def required_scenarios(text: str, side: str) -> list[str]:
    """The scored scenarios of one side, from the output of `conformance list --requirements`."""
    scored = text.partition("Run and reported")[0]
    section = scored.partition(f"{side.capitalize()} scenarios")[2].partition(" scenarios ")[0]
    return [line.removeprefix("  - ") for line in section.splitlines() if line.startswith("  - ")]


def read_baseline(path: Path) -> dict[str, str]:
    """Expected failures (`scenario:check`) and their reasons, from a file in the suite's own format.

    Raises:
        ValueError: an entry without a reason.
    """
    if not path.exists():
        return {}
    baseline: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.strip().startswith("- "):
            continue
        match = ENTRY.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"{path.name}: no reason for {line.strip()}")
        baseline[match["key"]] = match["reason"]
    return baseline


Verdict = Literal["pass", "expected failure", "not applicable", "FAIL"]


@dataclass(frozen=True)
class Row:
    """A scenario in one group; `reasons` say why it does not simply pass."""

    verdict: Verdict
    reasons: tuple[str, ...] = ()
    passed_checks: int = 0


@dataclass
class Judgement:
    """All rows of a group, and what is wrong with it."""

    rows: dict[str, Row] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def judge(
    scenarios: Iterable[str], results: Results, baseline: Mapping[str, str], not_applicable: Mapping[str, str]
) -> Judgement:
    """Compare a run with what is expected of it.

    `not_applicable` maps patterns of scenario names to reasons. A scenario that should have run and did not is a
    problem, and so is a pattern or an entry that concerns nothing.
    """
    judgement = Judgement()
    unused = set(baseline) | set(not_applicable)
    for scenario in scenarios:
        pattern = next((each for each in not_applicable if fnmatch.fnmatchcase(scenario, each)), None)
        if pattern is not None:
            unused.discard(pattern)
            judgement.rows[scenario] = Row("not applicable", (not_applicable[pattern],))
        else:
            _judge_scenario(judgement, scenario, results.get(scenario), baseline, unused)
    judgement.problems += [f"expected, but did not happen: {entry}" for entry in sorted(unused)]
    return judgement


def _judge_scenario(
    judgement: Judgement, scenario: str, checks: list[Check] | None, baseline: Mapping[str, str], unused: set[str]
) -> None:
    if not checks:
        judgement.problems.append(f"{scenario}: did not run")
        judgement.rows[scenario] = Row("FAIL")
        return
    failing = {f"{scenario}:{check.id}": check for check in checks if check.status in FAILING}
    unexpected = [key for key in failing if key not in baseline]
    judgement.problems += [f"{key}: {failing[key].status} {failing[key].message}" for key in unexpected]
    unused.difference_update(failing)
    passed = sum(check.status == "SUCCESS" for check in checks)
    reasons = tuple(dict.fromkeys(baseline[key] for key in failing if key in baseline))
    verdict: Verdict = "FAIL" if unexpected else "expected failure" if reasons else "pass"
    judgement.rows[scenario] = Row(verdict, reasons, passed)
