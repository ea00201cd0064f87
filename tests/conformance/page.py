"""docs/conformance.md from the rows of a run. Pure; the same outcome makes the same page, to the byte."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.conformance.checks import Judgement, Row
from tests.conformance.foreign import ERAS
from tests.conformance.foreign import ERRANDS as FOREIGN_ERRANDS
from tests.conformance.groups import CLIENT_GROUPS, SERVER_GROUPS, Group
from tests.conformance.inspector import COLUMNS, ERRANDS

KEYS = {"conformance": "suite", "inspector": "inspector", "server-everything": "everything"}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "conformance.md"
INTRO = """<!-- written by `python -m tests.conformance --write`: do not edit -->

# Conformance

The official suite `@modelcontextprotocol/conformance` {suite} and the command line of the MCP Inspector
`@modelcontextprotocol/inspector` {inspector}, against both programs and in both protocol eras. CI runs
`python -m tests.conformance --check`, which fails on any outcome that differs from this page.

In the tables 2025-11-25 stands for the era with a handshake ("legacy"), 2026-07-28 for the one without ("modern").
A scenario passes when all its checks do; a warning of the suite counts as a failure. Expected failures stand, each with
its reason, in `tests/conformance/baselines/`; one that no longer fails is an error too. The frozen requirements are
the set that the suite scores for a release; its client half is in the client table. Scenarios of extensions (`tasks-*`,
`sep-2640-*`) belong to no protocol version and are left out: neither program offers these extensions.

"""
SERVER_INTRO = """
## Server scenarios

The worker is its own application (`create_app`) with the suite's fixture tools, resources and prompts registered on its
server object. The bridge runs in profile `full`, unless it says otherwise, between an HTTP-to-stdio shim
(`tests/conformance/shim.py`) and a server on the SDK with the same fixtures, sessions, resumable streams and
subscriptions (`tests/conformance/everything_server.py`). `{contract}` is the shim's own check: every line of stdout is
ASCII JSON-RPC that something waits for, and each request got one answer.

"""
CLIENT_INTRO = """
## Client scenarios

The suite is the server, the bridge (profile `full`) its client, and a raw JSON-RPC host drives the bridge over stdio
(`tests/conformance/driver.py`). Host and server may be of different eras.

"""
INSPECTOR_INTRO = """
## Inspector

The shipped programs with the real tools: the worker over HTTP, and the bridge as the Inspector starts it over stdio in
front of that worker. `legacy` and `modern` are the Inspector's `--protocol-era`; the station only ever is a legacy
host.

"""


FOREIGN_INTRO = """
## A server of another SDK

npm's `@modelcontextprotocol/server-everything` {everything}, in TypeScript, of 2025-11-25 and with sessions, behind the
bridge in profile `full`. A raw host of either era calls its tools; three of them ask back, for the user, the model and
the folders of the host, one reports progress.

"""


class Notes:
    """Reasons, numbered in the order of their first use."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, reasons: Sequence[str]) -> str:
        return "".join(f" [{self._numbers.setdefault(reason, len(self._numbers) + 1)}]" for reason in reasons)

    def text(self) -> str:
        return "".join(f"{number}. {reason}\n" for reason, number in self._numbers.items())


def render(
    judgements: Mapping[str, Judgement],
    inspected: Mapping[tuple[str, str, str], Row],
    visited: Mapping[tuple[str, str], Row],
) -> str:
    """The whole page."""
    notes, pinned = Notes(), versions()
    server_columns = [group for group in SERVER_GROUPS if not group.requirements]
    parts = [
        INTRO.format(**pinned),
        _totals(judgements),
        SERVER_INTRO.format(contract="stdio-contract"),
        _scenarios(server_columns, judgements, notes),
        CLIENT_INTRO,
        _scenarios(CLIENT_GROUPS, judgements, notes),
        INSPECTOR_INTRO,
        _inspector(inspected),
        FOREIGN_INTRO.format(**pinned),
        _foreign(visited),
        f"\n## Reasons\n\n{notes.text()}",
    ]
    return "".join(parts)


def versions() -> dict[str, str]:
    """The pinned versions, from the file that pins them."""
    pinned = json.loads((Path(__file__).parent / "package.json").read_text(encoding="utf-8"))["dependencies"]
    return {KEYS[name.rpartition("/")[2]]: version for name, version in pinned.items()}


def _totals(judgements: Mapping[str, Judgement]) -> str:
    lines = [_row("program", "pass", "expected failure", "not applicable", "checks passed"), _row(*["---"] * 5)]
    for group in (*SERVER_GROUPS, *CLIENT_GROUPS):
        rows = judgements[group.key].rows.values()
        count: Callable[[str], str] = lambda verdict, rows=rows: str(sum(row.verdict == verdict for row in rows))  # type: ignore[misc]  # noqa: E731
        title = group.title if group.side == "server" else f"bridge as client, {group.title}"
        failed = count("FAIL")
        passed = count("pass") + ("" if failed == "0" else f" ({failed} FAIL)")
        checks = str(sum(row.passed_checks for row in rows))
        lines.append(_row(title, passed, count("expected failure"), count("not applicable"), checks))
    return "".join(lines)


def _scenarios(groups: Sequence[Group], judgements: Mapping[str, Judgement], notes: Notes) -> str:
    names: dict[str, None] = {}
    for group in groups:
        names |= dict.fromkeys(_family(name) for name in judgements[group.key].rows)
    lines = [_row("scenario", *(group.title for group in groups)), _row(*["---"] * (len(groups) + 1))]
    for name in names:
        cells = []
        for group in groups:
            row = next((row for each, row in judgements[group.key].rows.items() if _family(each) == name), None)
            cells.append("" if row is None else row.verdict.replace("not applicable", "n/a") + notes.mark(row.reasons))
        lines.append(_row(f"`{name}`", *cells))
    return "".join(lines)


def _family(scenario: str) -> str:
    """The 30 authorization scenarios share a row: none of them concerns the bridge."""
    return "auth/*" if scenario.startswith("auth/") else scenario


def _inspector(inspected: Mapping[tuple[str, str, str], Row]) -> str:
    lines = [_row("errand", *(f"{target}, {era}" for target, era in COLUMNS)), _row(*["---"] * (len(COLUMNS) + 1))]
    lines += [_row(each.name, *(inspected[each.name, *column].verdict for column in COLUMNS)) for each in ERRANDS]
    return "".join(lines)


def _foreign(visited: Mapping[tuple[str, str], Row]) -> str:
    lines = [_row("tool", *(f"host {version}" for version in ERAS.values())), _row(*["---"] * (len(ERAS) + 1))]
    tools = [errand.tool for errand in FOREIGN_ERRANDS]
    lines += [_row(f"`{tool}`", *(visited[tool, era].verdict for era in ERAS)) for tool in tools]
    return "".join(lines)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"
