"""Reads tiles by the vision provider: a picture goes out, lines and regions come back in pixels of the whole picture.

Owns what becomes of an answer that is cut, refused or missing: its tile is halved and asked again, or the local engine
reads it. Knows neither requests nor prompts, which are the provider's, nor what a tile is read for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from sam2_mcp_worker.deadline import Deadline, current_deadline
from sam2_mcp_worker.engines.ports import (
    Box,
    Region,
    Sight,
    TextLine,
    TileReading,
    VisionModel,
    VisionProvider,
    Wanted,
)
from sam2_mcp_worker.engines.vision_errors import THIS_PICTURE, VisionError
from sam2_mcp_worker.engines.vision_tiles import SettledLines, encode_tile, settle_lines
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import JOB_LIMIT_S
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.region_seams import merge_regions
from sam2_mcp_worker.media.seams import merge_readings
from sam2_mcp_worker.media.tiling import TileLimit, claude_tiles, halves, plan_tiles
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services

# Raise it whenever the same sight becomes another reading: it is part of every cache key.
READER_VERSION = 1
# Besides those that are encoded or asked about: tiles that wait for their turn, and those whose lines are settled.
TILES_AROUND = 4
# What settling the lines of a tile takes on a busy machine; a call that must not be outlived keeps it free.
SETTLE_S = 1.0
# How often a tile is halved, by what cut the answer. An eighth of a tile holds no more print than fits any answer; a
# half that is too slow again says that the provider is slow, not that the tile is dense.
MOST_HALVINGS_AFTER = {"": 0, "tokens": 3, "time": 1, "connection": 0}
TIME_RAN_OUT = "time ran out before the whole answer had come"
CONNECTION_BROKE = "the connection broke before the whole answer had come"
# Halves hold at least half of what the answer was cut at, so they take no less than this share of its time.
SHORTER = 0.5
# In a queue of their own, tiles to be sent never wait behind all those whose lines are being settled: settling takes
# four times as long, and a slot of the provider that waits for a file is lost.
ENCODING = "/encode"
AGAIN = {"": "", "tokens": "", "time": TIME_RAN_OUT, "connection": CONNECTION_BROKE}

Item = TypeVar("Item", TextLine, Region)


class ClaudeReader:
    """A `TextReader` that asks `services.vision`; what that cannot do the local engine does.

    Reading goes on for `vision_tile_limit_s` a question though the call that wanted it has ended, since it is paid for
    anyway and the next call finds it. Where nothing may go on in the background, the call's deadline is the tile's.
    """

    def __init__(self, services: Services, model: VisionModel, wanted: Wanted) -> None:
        assert services.vision is not None
        self._services = services
        self._vision: VisionProvider = services.vision
        self._model = model
        self._wanted = wanted
        settings = services.settings
        self._limit = claude_tiles(settings.claude_tile_side_px, settings.claude_tile_tokens)

    @property
    def identity(self) -> str:
        wanted = self._wanted
        sizes = cache_key(wanted.text, wanted.labels, wanted.definitions, repr(self._limit))[:16]
        return f"vision/{READER_VERSION} {self._vision.identity(self._model)} {sizes}"

    @property
    def tile_limit(self) -> TileLimit:
        return self._limit

    @property
    def tiles_in_flight(self) -> int:
        return self._services.vision_turns.size + TILES_AROUND

    @property
    def costs_money(self) -> bool:
        return True

    async def read_boxes(
        self, pixels: PixelFile, boxes_xyxy_px: list[Box], *, job: str, timeout_s: float
    ) -> list[TextLine]:
        """By the local engine: known lines need no language model."""
        return await self._services.reader.read_boxes(pixels, boxes_xyxy_px, job=job, timeout_s=timeout_s)

    async def read_tile(self, pixels: PixelFile, rect_xyxy_px: Box, *, job: str, timeout_s: float) -> TileReading:
        """As the port says; `timeout_s` bounds each native step, the settings what the provider may take.

        Raises:
            WorkerError: the provider is overloaded or gave nothing in time, or the local engine failed in its place.
        """
        task = _TileTask(self._services, self._vision, self._model, self._wanted, self._limit, pixels, job, timeout_s)
        return await task.read(rect_xyxy_px, max(MOST_HALVINGS_AFTER.values()))


@dataclass(frozen=True, slots=True)
class _TileTask:
    """One tile, with everything that its steps share."""

    services: Services
    vision: VisionProvider
    model: VisionModel
    wanted: Wanted
    limit: TileLimit
    pixels: PixelFile
    job: str
    timeout_s: float

    async def read(self, rect: Box, halvings: int) -> TileReading:
        """The reading of the rectangle, by whoever can read it."""
        trouble = self.vision.trouble_with(self.model)
        if isinstance(trouble, VisionError):
            return await self._stand_in(rect, trouble)
        try:
            sight, took_s = await self._look(rect)
        except VisionError as error:
            if not error.local_reads_on:
                raise
            return await self._stand_in(rect, error)
        left = min(halvings, MOST_HALVINGS_AFTER[sight.cut])
        parts = halves(rect, self.limit) if left else []
        if not parts:
            return await self._reading(rect, sight)
        if self._deadline().remaining_s() < took_s * SHORTER:
            return replace(await self._reading(rect, sight), again=TIME_RAN_OUT)
        return await self._halved(rect, sight, parts, left - 1)

    async def _look(self, rect: Box) -> tuple[Sight, float]:
        """What the provider saw, and the seconds that it took.

        Raises:
            VisionError: as the provider says, or no turn came before the call's deadline.
        """
        try:
            async with self.services.vision_turns.slot(self.job, self._turn_deadline(), again=False):
                with self.services.work_directory("tile") as workdir:
                    return await self._ask(rect, workdir / "tile")
        except TimeoutError as error:
            raise VisionError("timeout", "no turn came before the deadline", next_step="call again") from error

    async def _ask(self, rect: Box, path: Path) -> tuple[Sight, float]:
        picture = await encode_tile(
            self.services.decoders,
            self.pixels,
            rect,
            path,
            max_bytes=self.services.settings.claude_image_bytes,
            timeout_s=self.timeout_s,
            job=self.job + ENCODING,
        )
        started_s = time.monotonic()
        sight = await self.vision.look(picture, self.wanted, model=self.model, deadline=self._deadline())
        return sight, time.monotonic() - started_s

    def _turn_deadline(self) -> Deadline:
        """Until when to wait for a turn: as long as the job lives, where it may go on in the background."""
        return Deadline.after(JOB_LIMIT_S) if self.services.settings.background_limit_s > 0 else self._deadline()

    def _deadline(self) -> Deadline:
        """When a question that is asked now must be answered."""
        settings = self.services.settings
        if settings.background_limit_s > 0:
            return Deadline.after(settings.vision_tile_limit_s)
        return Deadline.after(min(settings.vision_tile_limit_s, current_deadline().remaining_s() - SETTLE_S))

    async def _reading(self, rect: Box, sight: Sight) -> TileReading:
        """The sight in pixels of the whole picture, with what in it nothing explains."""
        lines = tuple(_moved(line, rect) for line in sight.lines)
        again = AGAIN[sight.cut]
        try:
            settled = await self._settled(rect, lines)
        except WorkerError as error:
            # What was paid for is not thrown away: heights are unknown then, and nothing may be called absent.
            settled = SettledLines(tuple(replace(line, height_px=0.0) for line in lines), (rect,))
            again = f"what was read could not be compared with the picture ({error.reason})"
        return TileReading(
            settled.lines,
            settled.undetected_ink,
            self._regions(rect, sight),
            truncated=bool(sight.cut),
            again=again,
            dropped=sight.dropped,
            invented=settled.invented,
        )

    def _regions(self, rect: Box, sight: Sight) -> tuple[Region, ...] | None:
        return tuple(_moved(region, rect) for region in sight.regions) if self.wanted.labels else None

    async def _settled(self, rect: Box, lines: Sequence[TextLine]) -> SettledLines:
        if not self.wanted.text:
            return SettledLines((), ())  # nobody was asked to read, so that ink says nothing
        return await settle_lines(
            self.services.decoders, self.pixels, rect, lines, timeout_s=self.timeout_s, job=self.job
        )

    async def _halved(self, rect: Box, sight: Sight, parts: list[Box], halvings: int) -> TileReading:
        """The halves read one beside the other; what a failed or cut one lacks, the whole's answer may have had."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._read_or_fail(part, halvings)) for part in parts]
        answers = [task.result() for task in tasks]
        errors = [answer for answer in answers if isinstance(answer, WorkerError)]
        readings = [None if isinstance(answer, WorkerError) else answer for answer in answers]
        if errors or any(reading is not None and reading.truncated for reading in readings):
            whole = replace(await self._reading(rect, sight), again=errors[0].reason if errors else "")
        elif any(reading is not None and reading.stood_in for reading in readings):
            whole = TileReading((), (), self._regions(rect, sight), truncated=True)  # all text is read anew
        else:
            return _merged(parts, readings)
        return _merged([*parts, rect], [*readings, whole])

    async def _read_or_fail(self, rect: Box, halvings: int) -> TileReading | WorkerError:
        try:
            return await self.read(rect, halvings)
        except WorkerError as error:
            return error

    async def _stand_in(self, rect: Box, error: VisionError) -> TileReading:
        """The local engine's reading. One that the provider may better later is marked so."""
        again = "" if error.kind in THIS_PICTURE else error.reason
        if not self.wanted.text:
            return TileReading((), (), again=again, stood_in=error.reason)
        local = self.services.reader
        x, y = rect[:2]
        parts = [
            (x + x0, y + y0, x + x1, y + y1)
            for x0, y0, x1, y1 in plan_tiles(rect[2] - x, rect[3] - y, local.tile_limit)
        ]
        readings = [await local.read_tile(self.pixels, part, job=self.job, timeout_s=self.timeout_s) for part in parts]
        merged = merge_readings(parts, readings)
        return TileReading(merged.lines, merged.undetected_ink, again=again, stood_in=error.reason)


def _merged(parts: Sequence[Box], readings: Sequence[TileReading | None]) -> TileReading:
    """One reading of the tile from those of its parts, of which one at least is there."""
    merged = merge_readings(parts, readings)
    read = [reading for reading in readings if reading is not None]
    looked = [reading for reading in read if reading.regions is not None]
    return TileReading(
        merged.lines,
        merged.undetected_ink,
        tuple(merge_regions(parts, [r.regions if r else None for r in readings])) if looked else None,
        # A part in which nobody looked for regions makes the whole one where there may be more.
        truncated=any(reading.truncated for reading in read) or 0 < len(looked) < len(read),
        again=next((reading.again for reading in read if reading.again), ""),
        stood_in=next((reading.stood_in for reading in read if reading.stood_in), ""),
        dropped=sum(reading.dropped for reading in read),
        invented=sum(reading.invented for reading in read),
    )


def _moved(item: Item, rect: Box) -> Item:
    """From pixels of the tile to pixels of the picture."""
    x0, y0, x1, y1 = item.box_xyxy_px
    left, top = rect[:2]
    return replace(item, box_xyxy_px=(x0 + left, y0 + top, x1 + left, y1 + top))
