"""`python -m tests.conformance [--write | --check] [--quick] [--only GROUP]`: runs the suite, prints its table.

Ends with 1 when anything failed that is not expected to, when something expected did not happen, and with --check
when the outcome is not what docs/conformance.md says.
"""

import argparse
import asyncio
import difflib
import os
import subprocess
import sys

from tests.conformance import toolchain
from tests.conformance.checks import Judgement
from tests.conformance.foreign import run_foreign
from tests.conformance.groups import CLIENT_GROUPS, SERVER_GROUPS, Group
from tests.conformance.inspector import run_inspector
from tests.conformance.page import PAGE, render
from tests.conformance.run import run_group, scenarios_of

# Two cores are what CI has; each group keeps about one busy.
PARALLEL = 2


async def run_groups(groups: list[Group]) -> dict[str, Judgement]:
    """Judge all groups, a few at a time; progress goes to stderr."""
    slots = asyncio.Semaphore(PARALLEL)

    async def run(group: Group) -> Judgement:
        async with slots:
            judgement = await run_group(group, await scenarios_of(group))
        counts = [row.verdict for row in judgement.rows.values()]
        summary = ", ".join(f"{counts.count(verdict)} {verdict}" for verdict in dict.fromkeys(counts))
        print(f"{group.key}: {summary}", file=sys.stderr)
        return judgement

    judgements = await asyncio.gather(*(run(group) for group in groups))
    return {group.key: judgement for group, judgement in zip(groups, judgements, strict=True)}


def select(quick: bool, only: list[str]) -> list[Group]:
    groups: list[Group] = [*SERVER_GROUPS, *CLIENT_GROUPS]
    return [group for group in groups if (group.quick or not quick) and (not only or group.key in only)]


async def whole(groups: list[Group]) -> tuple[str, list[str]]:
    """The page of a full run, and all problems."""
    judgements = await run_groups(groups)
    inspected, inspector_problems = await run_inspector()
    visited, foreign_problems = await run_foreign()
    page = render(judgements, inspected, visited)
    return page, [*problems_of(judgements), *inspector_problems, *foreign_problems]


def problems_of(judgements: dict[str, Judgement]) -> list[str]:
    return [f"{key}: {problem}" for key, judgement in judgements.items() for problem in judgement.problems]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__.splitlines()[0])
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--write", action="store_true", help="write docs/conformance.md")
    mode.add_argument("--check", action="store_true", help="fail when docs/conformance.md says something else")
    parser.add_argument("--quick", action="store_true", help="no mixes of eras, no Inspector, no page")
    parser.add_argument("--only", action="append", default=[], metavar="GROUP", help="this group; no page")
    options = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("SAM2_MCP_") and name != "SAM2_MCP_TESSDATA_DIR"]:
        del os.environ[name]
    try:
        toolchain.ensure()
    except subprocess.SubprocessError as error:
        return report([f"the suite could not be installed, its installer says why above ({error})"])
    groups = select(options.quick, options.only)
    if options.quick or options.only:
        return report(problems_of(asyncio.run(run_groups(groups))))
    page, problems = asyncio.run(whole(groups))
    print(page)
    if options.write:
        PAGE.write_text(page, encoding="utf-8")
    committed = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if options.check and page != committed:
        diff = difflib.unified_diff(
            committed.splitlines(), page.splitlines(), "docs/conformance.md", "this run", "", "", 0
        )
        problems = [*problems, "docs/conformance.md says something else:", *diff]
    return report(problems)


def report(problems: list[str]) -> int:
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
