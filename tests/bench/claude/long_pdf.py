"""A long PDF of image pages read by the scripted Claude: calls under the limit, every page accounted for, no tile lost.

    python -m tests.bench.claude.long_pdf [--pages 60] [--check] [--json]

Latencies as in schedule.py. A twentieth of the answers are cut, 2 % are refused for a moment (429 with retry-after 1)
and 1 % with 529, 1 % break off: each of these fits into the time of its tile, so none may cost print. What is printed
on each page is known, and the text that is delivered is compared with it line by line.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.claude.command import finish, options, rows_of
from tests.bench.claude.scene import Called, Record, fake_process, follow, quiet_environment, worker_program
from tests.bench.claude.schedule import slow_settings
from tests.fakes.claude_pages import TruePage, make_page, pdf_of
from tests.fakes.claude_script import REAL, Script, cut, overloaded, rate_limited, reset

# A4 at 150 dpi: two tiles.
PAGE_SIZE_PX = (1240, 1754)
CALL_LIMIT_S = 27.0


@dataclass(frozen=True)
class LongPdf:
    """All calls for one document. A line is lost when its page is delivered as done without it."""

    pages: int
    calls: int
    errors: list[str]
    longest_call_s: float
    total_s: float
    done: int
    failed: list[int]
    never_delivered: list[int]
    delivered_twice: list[int]
    lines: int
    lines_lost: int
    requests: int
    faults: dict[str, int]
    refused: int
    scaled_down: int
    usd_per_page: float
    tokens_per_page: float

    def shortcomings(self, limit_s: float) -> list[str]:
        claims = {
            f"a call took {self.longest_call_s:.1f} s": self.longest_call_s >= limit_s,
            f"calls that ended in an error: {self.errors}": bool(self.errors),
            f"failed pages: {self.failed}": bool(self.failed),
            f"pages that were never delivered: {self.never_delivered}": bool(self.never_delivered),
            f"pages that were delivered twice: {self.delivered_twice}": bool(self.delivered_twice),
            f"{self.lines_lost} of {self.lines} lines lost": self.lines_lost > 0,
            f"{self.refused} requests refused": self.refused > 0,
            f"{self.scaled_down} pictures scaled down": self.scaled_down > 0,
        }
        return [claim for claim, holds in claims.items() if holds]


def script(time_scale: float) -> Script:
    chances = {cut(0.6): 0.05, rate_limited("1"): 0.02, overloaded(): 0.01, reset(0.4): 0.01}
    return Script(latency=REAL, chances=chances, seed=60, time_scale=time_scale)


def document(count: int) -> list[TruePage]:
    return [make_page(f"long-{number}", *PAGE_SIZE_PX, density=0.4 + number % 5 * 0.15) for number in range(count)]


async def measure(page_count: int, scratch: Path, time_scale: float = 1.0) -> LongPdf:
    pages = document(page_count)
    path = scratch / "long.pdf"
    path.write_bytes(pdf_of(pages))
    with fake_process(pages, partial(script, time_scale)) as fake:
        async with worker_program(scratch, **fake.settings, **slow_settings(time_scale), segmenter="off") as worker:
            calls = await follow(worker.client, "inspect_pdf", source=await worker.client.upload(path))
            return judge(pages, calls, fake.record())


def judge(pages: Sequence[TruePage], calls: Sequence[Called], record: Record) -> LongPdf:
    """What became of every page and every line of it."""
    parts: dict[int, list[dict[str, Any]]] = {number: [] for number in range(1, len(pages) + 1)}
    for page in (page for each in calls for page in each.facts.get("pages", [])):
        parts[page["page_number"]].append(page)
    ends = {n: sum(not part.get("continues") for part in found) for n, found in parts.items()}
    done = [n for n, found in parts.items() if found and all(part["status"] == "done" for part in found)]
    lost = {n: lost_lines(pages[n - 1], " ".join(text_of(part) for part in parts[n])) for n in done}
    cost = Counter({key: sum(each.usage.get(key, 0) for each in calls) for key in ("usd", "output_tokens")})
    return LongPdf(
        pages=len(pages),
        calls=len(calls),
        errors=[each.error for each in calls if each.error],
        longest_call_s=max(each.took_s for each in calls),
        total_s=sum(each.took_s for each in calls),
        done=len(done),
        failed=[n for n, found in parts.items() if any(part["status"] == "failed" for part in found)],
        never_delivered=[n for n, count in ends.items() if count == 0],
        delivered_twice=[n for n, count in ends.items() if count > 1],
        lines=sum(len(page.lines) for page in pages),
        lines_lost=sum(lost.values()),
        requests=len(record.requests),
        faults=dict(Counter(each.fault for each in record.requests if each.fault)),
        refused=len(record.refused),
        scaled_down=record.scaled_down,
        usd_per_page=cost["usd"] / len(pages),
        tokens_per_page=cost["output_tokens"] / len(pages),
    )


def text_of(part: dict[str, Any]) -> str:
    return f"{part.get('text') or ''} {part.get('ocr_text') or ''}"


def lost_lines(page: TruePage, text: str) -> int:
    """How many of its lines are not in the text, spaces aside."""
    squeezed = "".join(text.split())
    return sum("".join(line.text.split()) not in squeezed for line in page.lines)


def main() -> int:
    parser = options("long_pdf")
    parser.add_argument("--pages", type=int, default=60)
    parser.add_argument("--time-scale", type=float, default=1.0, help="all latencies and limits that much longer")
    arguments = parser.parse_args()
    quiet_environment()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(arguments.pages, Path(folder), arguments.time_scale))
    short = found.shortcomings(CALL_LIMIT_S * arguments.time_scale)
    rows = asdict(found)
    return finish(arguments, rows, rows_of(rows), short)


if __name__ == "__main__":
    sys.exit(main())
