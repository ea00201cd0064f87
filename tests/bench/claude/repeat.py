"""The same document again and again: identical coverage and text, no work directory used twice, repeats cost nothing.

    python -m tests.bench.claude.repeat [--pages 9] [--check] [--json]

Copies that differ in a comment share no cache, so each is read anew: three in turn, three at once, by a scripted Claude
whose latencies, and with them the order of everything, differ each time. Then the last copy three times more.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.claude.command import finish, options, rows_of
from tests.bench.claude.scene import Called, follow, quiet_environment
from tests.conftest import RunningWorker, serving
from tests.fakes.claude_pages import TruePage, make_page, pdf_of
from tests.fakes.claude_script import REAL, Script
from tests.fakes.claude_server import FakeClaude, claude_server

from sam2_mcp_worker.cli.client import WorkerClient
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings

COPIES = 3
PAGE_SIZE_PX = (1240, 1754)


@dataclass(frozen=True)
class Repeats:
    """`readings` are the different results that the copies gave: one when they are identical."""

    pages: int
    copies: int
    readings: int
    complete: bool
    characters: list[int]
    work_directories: int
    used_twice: int
    left_behind: int
    copy_requests: list[int]
    repeat_requests: int
    repeat_usd: float
    repeats_same: bool

    def shortcomings(self) -> list[str]:
        claims = {
            f"{self.readings} different readings of {self.copies} copies": self.readings != 1,
            "a copy was not read completely": not self.complete,
            f"{self.used_twice} work directories used twice": self.used_twice > 0,
            f"{self.left_behind} work directories left behind": self.left_behind > 0,
            "a copy was read from the cache, which shows nothing": 0 in self.copy_requests,
            f"a repeat cost {self.repeat_requests} requests, {self.repeat_usd} US dollars": bool(
                self.repeat_requests or self.repeat_usd
            ),
            "a repeat had another result": not self.repeats_same,
        }
        return [claim for claim, holds in claims.items() if holds]


def document(count: int) -> list[TruePage]:
    return [make_page(f"again-{number}", *PAGE_SIZE_PX, shapes=["coin", "seal"]) for number in range(count)]


@contextmanager
def watched(services: Services) -> Iterator[list[Path]]:
    """Every work directory that is made meanwhile."""
    seen: list[Path] = []
    make = services.work_directory

    @contextmanager
    def recording(label: str) -> Iterator[Path]:
        with make(label) as path:
            seen.append(path)
            yield path

    def recorded(label: str) -> AbstractContextManager[Path]:
        return recording(label)

    services.work_directory = recorded  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        services.work_directory = make  # type: ignore[method-assign]


def reading(calls: Sequence[Called]) -> str:
    """What the calls say about the document, without addresses, times and costs."""
    pages = [
        {key: value for key, value in page.items() if key not in ("overlay", "notes")}
        for each in calls
        for page in each.facts.get("pages", [])
    ]
    pages.sort(key=lambda page: int(page["page_number"]))
    return json.dumps([calls[-1].facts.get("coverage"), pages], ensure_ascii=False, sort_keys=True)


async def measure(page_count: int, scratch: Path, time_scale: float = 1.0) -> Repeats:
    pages = document(page_count)
    data = pdf_of(pages)
    with claude_server(pages, Script(latency=REAL, time_scale=time_scale)) as fake:
        settings = Settings(port=0, data_dir=scratch / "data", segmenter="off", **fake.settings())
        running = serving(settings)
        worker = next(running)
        try:
            return await read_again_and_again(worker, fake, data, scratch)
        finally:
            next(running, None)


async def read_again_and_again(worker: RunningWorker, fake: FakeClaude, data: bytes, scratch: Path) -> Repeats:
    """All that the module's first words say, on a worker that nobody else uses meanwhile; `data` is the PDF."""
    with watched(worker.services) as directories:
        return await _read(worker, fake, data, scratch, directories)


async def _read(
    worker: RunningWorker, fake: FakeClaude, data: bytes, scratch: Path, directories: list[Path]
) -> Repeats:
    client = WorkerClient(worker.base_url, worker.token)
    handles: list[str] = []
    for number in range(2 * COPIES):
        path = scratch / f"copy-{number}.pdf"
        path.write_bytes(data + b"%% copy %d\n" % number)
        handles.append(await client.upload(path))

    async def read(number: int) -> list[Called]:
        fake.script.seed = number
        return await follow(client, "inspect_pdf", source=handles[number], labels=["coin", "seal"], detail="detailed")

    copies = [await read(number) for number in range(COPIES)]
    copies += await asyncio.gather(*(read(number) for number in range(COPIES, 2 * COPIES)))
    repeats = [await read(2 * COPIES - 1) for _ in range(3)]
    readings = {reading(calls) for calls in copies}
    coverages: list[dict[str, Any]] = [calls[-1].facts.get("coverage", {}) for calls in copies]
    pages = coverages[0].get("total", 0)
    return Repeats(
        pages=pages,
        copies=len(copies),
        readings=len(readings),
        complete=all(0 < pages == each.get("done") for each in coverages),
        characters=[characters(calls) for calls in copies],
        work_directories=len(directories),
        used_twice=len(directories) - len(set(directories)),
        left_behind=len(list(worker.services.work_root.iterdir())),
        copy_requests=[spent(calls, "requests") for calls in copies],
        repeat_requests=sum(spent(calls, "requests") for calls in repeats),
        repeat_usd=sum(spent(calls, "usd") for calls in repeats),
        repeats_same={reading(calls) for calls in repeats} == {reading(copies[-1])},
    )


def characters(calls: Sequence[Called]) -> int:
    return sum(page.get("characters") or 0 for each in calls for page in each.facts.get("pages", []))


def spent(calls: Sequence[Called], what: str) -> Any:
    return sum(each.usage.get(what, 0) for each in calls)


def main() -> int:
    parser = options("repeat")
    parser.add_argument("--pages", type=int, default=9)
    parser.add_argument("--time-scale", type=float, default=1.0, help="latencies that much longer")
    arguments = parser.parse_args()
    quiet_environment()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(arguments.pages, Path(folder), arguments.time_scale))
    rows = asdict(found)
    return finish(arguments, rows, rows_of(rows), found.shortcomings())


if __name__ == "__main__":
    sys.exit(main())
