"""Every file of ../shared/corpus/pdf through inspect_pdf on a real worker: what became of each.

python -m tests.bench.corpus [--json] [FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.conftest import CORPUS, serving
from tests.e2e.tools import Agent, ToolFailure

from sam2_mcp_worker.settings import Settings


@dataclass
class Outcome:
    """One file: pages by status, sources, characters, calls and the longest of them."""

    file: str
    error: str
    pages: int
    done: int
    failed: int
    unreached: int
    sources: str
    characters: int
    unread_ink: int
    calls: int
    longest_call_s: float
    notes: str


async def inspect(agent: Agent, path: Path) -> Outcome:
    """Follow one file to the end of its cursor."""
    handle = await agent.upload(path)
    outcome = Outcome(path.name, "", 0, 0, 0, 0, "", 0, 0, 0, 0.0, "")
    sources: dict[str, int] = {}
    notes: set[str] = set()
    arguments = {"source": handle}
    while True:
        started_s = time.monotonic()
        try:
            result = await agent.call("inspect_pdf", **arguments)
        except ToolFailure as failure:
            outcome.error = str(failure).split("]")[0] + "]"
            result = {}
        outcome.calls += 1
        outcome.longest_call_s = round(max(outcome.longest_call_s, time.monotonic() - started_s), 1)
        if not result:
            return outcome
        coverage = result["coverage"]
        outcome.pages, outcome.done = coverage["total"], coverage["done"]
        outcome.failed, outcome.unreached = len(coverage["failed"]), len(coverage["unreached"])
        for page in result["pages"]:
            source = page.get("source", page["status"])
            sources[source] = sources.get(source, 0) + 1
            if not page.get("continued"):
                outcome.characters += page.get("characters", 0)
                outcome.unread_ink += page.get("undetected_ink", 0)
            notes |= {note.split(":")[0].split("(")[0][:60] for note in page.get("notes", [])}
            if page["status"] == "failed":
                notes.add(page["reason"][:60])
        if "cursor" not in result:
            outcome.sources = " ".join(f"{name}:{count}" for name, count in sorted(sources.items()))
            outcome.notes = "; ".join(sorted(notes))
            return outcome
        arguments["cursor"] = result["cursor"]


async def inspect_all(agent: Agent, files: list[Path]) -> list[Outcome]:
    return [await inspect(agent, path) for path in files]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=CORPUS)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    files = sorted(arguments.folder.glob("*.pdf"))
    with tempfile.TemporaryDirectory() as data:
        running = serving(Settings(port=0, data_dir=Path(data)))
        worker = next(running)
        outcomes = asyncio.run(inspect_all(Agent(worker), files))
        alive = not worker.services.trouble()
        restarts = worker.services.decoders.stats().restarts
        next(running, None)
    if arguments.json:
        print(json.dumps([asdict(outcome) for outcome in outcomes]))
    else:
        for o in outcomes:
            status = o.error or f"{o.done}/{o.pages} done, {o.failed} failed, {o.unreached} unreached"
            print(
                f"{o.file:34} {status:38} {o.sources:28} {o.characters:7} chars  ink {o.unread_ink:4}  "
                f"{o.calls} calls, longest {o.longest_call_s} s  {o.notes}"
            )
        print(f"worker well: {alive}; decoder restarts: {restarts}")
    return 0 if alive else 1


if __name__ == "__main__":
    sys.exit(main())
