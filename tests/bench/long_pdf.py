"""A long image-only PDF through inspect_pdf: calls under the budget, every page once, beside the pure OCR time.

    python -m tests.bench.long_pdf [--pages 120] [--json]

The pure time is that of the same tiles of the same pictures through the same OCR children, with nothing around them:
no rendering, no cache, no overlay, no delivery. It is measured on every tenth page, in the same run, before and after.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fpdf import FPDF
from PIL import Image
from tests.conftest import RunningWorker, serving
from tests.e2e.tools import Agent

from sam2_mcp_worker.demo import leaflet_pictures as pictures
from sam2_mcp_worker.demo.fonts import find_fonts
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.tiling import plan_tiles
from sam2_mcp_worker.settings import Settings

A4_MM = (210.0, 297.0)


def make_document(path: Path, page_count: int, scratch: Path) -> list[Path]:
    """Image-only pages: the leaflet's three, each time with another page number printed on it. Their pictures."""
    fonts = find_fonts()
    makers = (
        pictures.cover_page,
        lambda fonts: pictures.detail_page(fonts, 4),
        lambda fonts: pictures.notices_page(fonts, 8),
    )
    drawn = [Image.open(io.BytesIO(make(fonts).jpeg())).convert("RGB") for make in makers]
    pdf, files = FPDF(unit="mm", format="A4"), []
    for number in range(1, page_count + 1):
        picture = drawn[number % len(drawn)].copy()
        stamp = Image.new("RGB", (4, 4), (number % 251, number // 251, 7))
        picture.paste(stamp, (2, 2))  # makes every page's bytes its own, so that nothing is served from a cache
        file = scratch / f"{number}.png"
        picture.save(file)
        files.append(file)
        pdf.add_page()
        pdf.image(str(file), 0, 0, *A4_MM)
    path.write_bytes(bytes(pdf.output()))
    return files


async def pure_seconds(worker: RunningWorker, files: list[Path], scratch: Path) -> float:
    """Wall time a page of the bare tiles, all children busy."""
    work = []
    for file in files:
        with Image.open(file) as image:
            rgb = image.convert("RGB")
            raw = scratch / f"{file.stem}.rgb"
            raw.write_bytes(rgb.tobytes())
            pixels = PixelFile(raw, *rgb.size)
        work += [(pixels, tile) for tile in plan_tiles(pixels.width_px, pixels.height_px)]

    async def read_all() -> float:
        started_s = time.monotonic()
        await asyncio.gather(
            *(worker.services.reader.read_tile(pixels, tile, job="pure", timeout_s=60) for pixels, tile in work)
        )
        return time.monotonic() - started_s

    return asyncio.run_coroutine_threadsafe(read_all(), worker.loop).result() / len(files)


async def follow(agent: Agent, handle: str) -> tuple[list[float], list[int], dict[str, Any]]:
    """Times of the calls, delivered pages, last coverage."""
    calls: list[float] = []
    pages: list[int] = []
    arguments: dict[str, Any] = {"source": handle}
    while True:
        started_s = time.monotonic()
        result = await agent.call("inspect_pdf", **arguments)
        calls.append(round(time.monotonic() - started_s, 2))
        pages += [page["page_number"] for page in result["pages"] if not page.get("continues")]
        if "cursor" not in result:
            return calls, pages, result["coverage"]
        arguments["cursor"] = result["cursor"]


async def measure(worker: RunningWorker, page_count: int, scratch: Path) -> dict[str, Any]:
    document = scratch / "long.pdf"
    files = make_document(document, page_count, scratch)
    agent = Agent(worker)
    handle = await agent.upload(document)
    sample = files[:: max(1, page_count // 12)]
    pure = [await asyncio.to_thread(lambda: asyncio.run(pure_seconds(worker, sample, scratch)))]
    started_s = time.monotonic()
    calls, pages, coverage = await follow(agent, handle)
    total_s = time.monotonic() - started_s
    pure.append(await asyncio.to_thread(lambda: asyncio.run(pure_seconds(worker, sample, scratch))))
    started_s = time.monotonic()
    again, pages_again, _ = await follow(agent, handle)
    again_s = time.monotonic() - started_s
    pure_total_s = statistics.mean(pure) * page_count
    return {
        "pages": page_count,
        "every_page_once": sorted(pages) == list(range(1, page_count + 1)) == sorted(pages_again),
        "coverage": coverage,
        "calls": len(calls),
        "longest_call_s": max(calls),
        "total_s": round(total_s, 1),
        "pure_ocr_s": round(pure_total_s, 1),
        "ratio": round(total_s / pure_total_s, 3),
        "again_s": round(again_s, 2),
        "again_calls": len(again),
        "again_longest_call_s": max(again),
    }


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, default=120)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        running = serving(Settings(port=0, data_dir=scratch / "data"))
        result = asyncio.run(measure(next(running), arguments.pages, scratch))
        next(running, None)
    if arguments.json:
        print(json.dumps(result))
    else:
        print("\n".join(f"{name:22} {value}" for name, value in result.items()))
    return 0 if result["every_page_once"] else 1


if __name__ == "__main__":
    sys.exit(main())
