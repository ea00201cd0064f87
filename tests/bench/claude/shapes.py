"""Pictures and pages of every shape through the engine's way to the scripted Claude: plan, encode, ask, merge.

    python -m tests.bench.claude.shapes [--count 300] [--check]

The scripted Claude refuses what the API would refuse and tells what it would have scaled down. Beyond that the table
says whether every pixel was shown and how many of the printed lines came back.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from tests.fakes.claude_pages import LABELS, Box, TruePage, make_page, pdf_of
from tests.fakes.claude_script import Script
from tests.fakes.claude_server import FakeClaude, claude_server

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.claude import ClaudeVision, build_claude
from sam2_mcp_worker.engines.ports import Sight, TextLine, TileReading, Wanted
from sam2_mcp_worker.engines.vision_tiles import encode_tile, settle_lines
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.media.decoder import DECODER_MEMORY_LIMIT_BYTES, DECODER_MODULE
from sam2_mcp_worker.media.pdf import PdfFile, suggested_px_per_pt
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.region_seams import merge_regions
from sam2_mcp_worker.media.seams import merge_readings
from sam2_mcp_worker.media.tiling import claude_tiles, plan_tiles
from sam2_mcp_worker.settings import Settings

# The pages that were lost in the field, and the ends of the range.
FIELD = ((1916, 19_983), (2250, 3182), (1000, 120_000), (1, 1), (1, 120_000), (120_000, 1), (1, 2000), (3000, 1))
# One past each limit of a tile: sides of 1568 px, 56 x 28 patches of 28 px.
EDGES = ((1568, 784), (1568, 785), (1569, 784), (1092, 1092), (1093, 1092), (784, 1568), (785, 1568), (1567, 812))
MOST_PIXELS = 12_000_000
TIMEOUT_S = 120.0
LOOKS_AT_ONCE = 4


def shapes(count: int, seed: int = 5) -> list[tuple[int, int]]:
    """Width and height of `count` pictures: those of the field, the edges of the limits, then by chance."""
    random = Random(seed)
    sizes = [*FIELD, *EDGES]
    while len(sizes) < count:
        width, height = (round(10 ** random.uniform(0, 4.6)) for _ in range(2))
        if width * height <= MOST_PIXELS:
            sizes.append((width, height))
    return sizes[:count]


def page_of(size: tuple[int, int], number: int) -> TruePage:
    labels = [label for label in LABELS if label in ("coin", "banknote", "seal")]
    columns = 1 + (size[0] > 1800)
    return make_page(f"shape-{number}", *size, density=0.4, shapes=labels, columns=columns)


@dataclass(frozen=True)
class Outcome:
    """What came of one picture."""

    page: TruePage
    tiles: int
    lines: tuple[TextLine, ...]
    regions: int
    unread_ink: int

    @property
    def lost(self) -> list[str]:
        """Printed lines that did not come back word for word."""
        found = {"".join(line.text.split()) for line in self.lines}
        return [line.text for line in self.page.lines if "".join(line.text.split()) not in found]


class Road:
    """The way of the engine, without services around it."""

    def __init__(self, decoders: ChildPool, vision: ClaudeVision, folder: Path, settings: Settings) -> None:
        self._decoders, self._vision, self._folder, self._settings = decoders, vision, folder, settings
        self._slots = asyncio.Semaphore(LOOKS_AT_ONCE)

    async def picture(self, page: TruePage, *, settle: bool = True) -> Outcome:
        """Raw pixels as a decoded picture would be."""
        path = self._folder / f"{page.name}.rgb"
        await asyncio.to_thread(lambda: path.write_bytes(page.rgb().tobytes()))
        return await self._read(page, PixelFile(path, *page.size_px), settle=settle)

    async def pdf_page(self, page: TruePage, *, settle: bool = True) -> Outcome:
        """As the image page of a PDF, drawn at the scale that inspect_pdf takes."""
        path = self._folder / f"{page.name}.pdf"
        await asyncio.to_thread(lambda: path.write_bytes(pdf_of([page])))
        pdf = PdfFile(path)
        facts = await pdf.read_page(self._decoders, 1, timeout_s=TIMEOUT_S, job=page.name)
        pixels = await pdf.render_page(
            self._decoders,
            1,
            px_per_pt=suggested_px_per_pt(facts),
            out_path=self._folder / f"{page.name}.rgb",
            timeout_s=TIMEOUT_S,
            job=page.name,
        )
        return await self._read(page, pixels, settle=settle)

    async def _read(self, page: TruePage, pixels: PixelFile, *, settle: bool) -> Outcome:
        limit = claude_tiles(self._settings.claude_tile_side_px, self._settings.claude_tile_tokens)
        tiles = plan_tiles(pixels.width_px, pixels.height_px, limit)
        readings = await asyncio.gather(*(self._tile(page, pixels, tile, settle) for tile in tiles))
        pixels.path.unlink()
        merged = merge_readings(tiles, readings)
        regions = merge_regions(tiles, [reading.regions for reading in readings])
        return Outcome(page, len(tiles), merged.lines, len(regions), len(merged.undetected_ink))

    async def _tile(self, page: TruePage, pixels: PixelFile, tile: Box, settle: bool) -> TileReading:
        async with self._slots:
            sight = await self._look(page, pixels, tile)
            lines = [replace(line, box_xyxy_px=_moved(line.box_xyxy_px, tile)) for line in sight.lines]
            regions = tuple(replace(region, box_xyxy_px=_moved(region.box_xyxy_px, tile)) for region in sight.regions)
            if not settle:
                return TileReading(tuple(lines), (), regions)
            settled = await settle_lines(self._decoders, pixels, tile, lines, job=page.name, timeout_s=TIMEOUT_S)
            return TileReading(settled.lines, settled.undetected_ink, regions)

    async def _look(self, page: TruePage, pixels: PixelFile, tile: Box) -> Sight:
        path = self._folder / f"{page.name}-{tile[0]}-{tile[1]}"
        picture = await encode_tile(
            self._decoders,
            pixels,
            tile,
            path,
            max_bytes=self._settings.claude_image_bytes,
            job=page.name,
            timeout_s=TIMEOUT_S,
        )
        try:
            wanted = Wanted(text=True, labels=LABELS)
            return await self._vision.look(picture, wanted, model="fast", deadline=Deadline.after(TIMEOUT_S))
        finally:
            path.unlink()


def _moved(box: Box, tile: Box) -> Box:
    return box[0] + tile[0], box[1] + tile[1], box[2] + tile[0], box[3] + tile[1]


def unseen_pixels(fake: FakeClaude, page: TruePage) -> int:
    """How much of the page was on no picture that was sent. Tiles form a grid, so rows and columns tell."""
    tiles = [tile[1] for seen in fake.requests for tile in seen.tiles if tile and tile[0] == page.name]
    return page.width_px * page.height_px - _reach(tiles, 0) * _reach(tiles, 1)


def _reach(tiles: Sequence[Box], axis: int) -> int:
    """Length that the tiles cover along an axis."""
    covered, end = 0, 0
    for start, stop in sorted({(tile[axis], tile[axis + 2]) for tile in tiles}):
        covered += max(0, stop - max(start, end))
        end = max(end, stop)
    return covered


async def run(count: int) -> int:
    """Print the table; the number of promises that were broken."""
    pages = [page_of(size, number) for number, size in enumerate(shapes(count))]
    broken = lost = lines = ink = tiles = 0
    with tempfile.TemporaryDirectory() as name, claude_server(pages, Script()) as fake:
        settings = Settings(data_dir=Path(name) / "data", claude_daily_cap_usd=10_000, **fake.settings())
        vision = build_claude(settings)
        await vision.start()
        started_s = time.monotonic()
        async with ChildPool(
            "decoder", DECODER_MODULE, size=2, config={}, memory_limit_bytes=DECODER_MEMORY_LIMIT_BYTES
        ) as decoders:
            road = Road(decoders, vision, Path(name), settings)
            for number, page in enumerate(pages):
                as_pdf = number % 3 == 2 and min(page.size_px) > 20 and number >= len(FIELD)
                outcome = await (road.pdf_page(page) if as_pdf else road.picture(page))
                unseen = unseen_pixels(fake, page)
                tiles, lines = tiles + outcome.tiles, lines + len(page.lines)
                lost, ink = lost + len(outcome.lost), ink + outcome.unread_ink
                broken += unseen > 0
                if unseen or outcome.lost:
                    _say(f"{page.width_px} x {page.height_px}: {unseen} px unseen, lost {outcome.lost[:3]}")
        await vision.close()
        broken += len(fake.refused) + len(fake.scaled_down) + fake.unknown_pictures
        _say(f"pictures and pages      {len(pages)}")
        _say(f"requests for tiles      {len(fake.requests)} for {tiles} tiles")
        _say(f"refused                 {len(fake.refused)} {fake.refused[:3]}")
        _say(f"scaled down             {len(fake.scaled_down)}")
        _say(f"not found on any page   {fake.unknown_pictures}")
        _say(f"printed lines           {lines}, of which not word for word {lost}; {ink} areas of unread ink")
        _say(f"time                    {time.monotonic() - started_s:.0f} s")
    return broken


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--check", action="store_true", help="end with 1 when anything was refused, scaled or unseen")
    given = parser.parse_args()
    broken = asyncio.run(run(given.count))
    return 1 if given.check and broken else 0


if __name__ == "__main__":
    sys.exit(main())
