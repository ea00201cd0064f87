"""Redacts one image: regions and phrases to areas, covered, decoded again, compared, read again, kept.

The output is a PNG made from the pixels that all tools here see: upright, 8-bit RGB, on white. So the first thing that
goes is everything beside the pixels, and colours under transparency with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import Box, TextLine, TileReading
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage, fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S
from sam2_mcp_worker.media.image import DecodedImage, decode_image
from sam2_mcp_worker.media.image_redaction import (
    CoverArea,
    compare_images,
    cover_image,
    image_traits,
    timeout_for,
)
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.tiling import plan_tiles
from sam2_mcp_worker.pipelines.read_picture import PictureReader, PictureReading, merge
from sam2_mcp_worker.pipelines.redact_areas import AreaFinder
from sam2_mcp_worker.pipelines.redact_findings import Findings, keep, output_name, unverified
from sam2_mcp_worker.pipelines.redact_image_check import OutputReader, proofs
from sam2_mcp_worker.pipelines.redact_lines import as_read, in_order, line_area
from sam2_mcp_worker.pipelines.redact_phrases import Match, find_phrases
from sam2_mcp_worker.pipelines.redact_task import RedactionTask

# With a line gone the detector may see a neighbour that it missed before. Each round covers what the last one showed.
ROUNDS = 3
# Boxes of ink that nobody could read: enough to look at.
MAX_TOLD_BOXES = 20


@dataclass(slots=True)
class _Planned:
    """An area and which phrase it is for; None = a region of the call."""

    area: CoverArea
    match: Match | None = None


class ImageRedactor:
    """The steps for one image, with what they share."""

    def __init__(self, task: RedactionTask) -> None:
        self._task = task
        self._planned: list[_Planned] = []
        self._findings = Findings(task.request.phrases)

    async def run(self) -> dict[str, Any]:
        """The result, with the handle of the redacted picture.

        Raises:
            WorkerError: the image cannot be decoded or has several frames, a region is wrong, or the output did not
                pass its check.
        """
        source = await self._decode()
        await self._plan_regions(source.pixels)
        if self._task.request.phrases:
            await self._plan_phrases(source.pixels)
        if not self._planned:
            return self._findings.to_json(self._task.request.method, None)
        out = await self._cover_and_check(source.pixels)
        name = output_name(self._task.stored.name, ".png", self._task.request.phrases)
        artifact = await keep(self._task.services, out, name=name, mime_type="image/png")
        return self._findings.to_json(self._task.request.method, artifact)

    async def _decode(self) -> DecodedImage:
        path = self._task.stored.path
        image = await decode_image(
            self._task.services.decoders,
            path,
            self._task.workdir / "source.rgb",
            max_pixels=self._task.services.settings.max_picture_pixels,
            timeout_s=self._task.timeout_s,
            job=self._task.job,
        )
        if image.format != "MPO":
            refuse_frames(image.frames, image.format)
        traits = await image_traits(
            self._task.services.redactors, path, timeout_s=self._task.timeout_s, job=self._task.job
        )
        self._findings.notes += _changes(image, traits.mode, traits.alpha, traits.carried)
        return image

    async def _plan_regions(self, pixels: PixelFile) -> None:
        finder = AreaFinder(self._task.services, self._task.stored, pixels, self._task.workdir, self._task.job)
        for region in self._task.request.regions:
            for found in await finder.areas(region):
                self._planned.append(_Planned(found.area))
                self._findings.cover_region(region.number, **found.about)

    async def _plan_phrases(self, pixels: PixelFile) -> None:
        tiles = plan_tiles(pixels.width_px, pixels.height_px)
        coverage = await self._read(pixels, tiles)
        if len(coverage.failed) == len(tiles):
            raise coverage.failed[0]
        reading = await asyncio.to_thread(merge, tiles, coverage)
        lines = in_order(reading.lines)
        await self._plan_matches(lines, pixels)
        places = [{"box_xyxy_px": list(line.box_xyxy_px)} for line in lines]
        await asyncio.to_thread(self._findings.miss, as_read(lines), places)
        self._tell_unread(reading)

    async def _plan_matches(self, lines: Sequence[TextLine], pixels: PixelFile) -> bool:
        """Plan an area for every line that holds a phrase; whether there was any."""
        matches = await asyncio.to_thread(find_phrases, self._task.request.phrases, as_read(lines))
        for match in matches:
            boxes = [line_area(lines[index].box_xyxy_px, (pixels.width_px, pixels.height_px)) for index in match.lines]
            self._planned += [_Planned(CoverArea(box), match) for box in boxes]
            for box in boxes:
                self._findings.cover_match(match, box_xyxy_px=list(box), shape="box", source="ocr")
        return bool(matches)

    async def _read(self, pixels: PixelFile, tiles: Sequence[Box]) -> Coverage[int, TileReading]:
        """Read all tiles, from the cache of read_text as far as they are there."""
        task = self._task
        reader = PictureReader(
            task.services.reader,
            task.services.cache,
            source_key=("image", task.stored.sha256),
            job=task.job,
            step_timeout_s=task.timeout_s,
        )
        coverage: Coverage[int, TileReading] = Coverage(tuple(range(len(tiles))))

        async def work(index: int) -> TileReading:
            task.tell(f"reading the picture: {coverage.settled} of {len(tiles)} tiles done")
            return await reader.read_tile(pixels, tiles[index], keep=True)

        return await fan_out(
            coverage, work, deadline=Deadline.after(JOB_LIMIT_S), limit=task.services.reader.tiles_in_flight
        )

    def _tell_unread(self, reading: PictureReading) -> None:
        """Why a phrase may stand in the picture all the same."""
        self._findings.parts_failed = bool(reading.unread)
        for what, boxes in (
            ("could not be read", [box for box, _ in reading.unread]),
            ("look like text and nobody could read them", list(reading.undetected_ink)),
        ):
            if boxes:
                shown = [list(box) for box in boxes[:MAX_TOLD_BOXES]]
                self._findings.incomplete.append(
                    f"{len(boxes)} areas {what}, a phrase may stand there: look at {shown} (x0, y0, x1, y1 px)"
                )

    async def _cover_and_check(self, source: PixelFile) -> Path:
        for number in range(1, ROUNDS + 1):
            self._task.tell("covering and verifying")
            out = self._task.workdir / f"redacted-{number}.png"
            areas = [planned.area for planned in self._planned]
            limit_s = timeout_for(source, self._task.timeout_s)
            redactors, method = self._task.services.redactors, self._task.request.method
            await cover_image(redactors, source, areas, method, out, timeout_s=limit_s, job=self._task.job)
            after = await self._decode_output(out, number, limit_s)
            check = await compare_images(redactors, source, after, areas, out, timeout_s=limit_s, job=self._task.job)
            self._findings.verified = proofs(check, method)
            if not await self._read_again(source, after):
                return out
        raise unverified(f"phrases were still readable after {ROUNDS} rounds")

    async def _decode_output(self, out: Path, number: int, timeout_s: float) -> PixelFile:
        image = await decode_image(
            self._task.services.decoders,
            out,
            self._task.workdir / f"redacted-{number}.rgb",
            max_pixels=self._task.services.settings.max_picture_pixels,
            timeout_s=timeout_s,
            job=self._task.job,
        )
        return image.pixels

    async def _read_again(self, source: PixelFile, after: PixelFile) -> bool:
        """Read the output where it changed; True when a phrase still shows: its place is planned for the next round."""
        reader = OutputReader(self._task)
        boxes = [planned.area.box_xyxy_px for planned in self._planned]
        if self._task.request.method != "fill":
            self._findings.verified.append(await reader.check_illegible(source, after, boxes))
        around = [planned.area.box_xyxy_px for planned in self._planned if planned.match is not None]
        if not around:
            return False
        shown = [await self._plan_matches(lines, after) for lines in await reader.lines_around(after, around)]
        if not any(shown):
            self._findings.verified.append("read again around each covered line: none of the phrases, nor a look-alike")
        return any(shown)


def refuse_frames(frames: int | None, image_format: str) -> None:
    """Only pictures of one frame are redacted: what stands in the others would stay, or be lost unsaid.

    Raises:
        WorkerError: several_frames.
    """
    if frames == 1:
        return
    raise WorkerError(
        "several_frames",
        f"the {image_format} has {frames or 'several, some of them damaged,'} frames",
        rule="redact_media takes pictures of one frame: regions of the others could not be given",
        next_step="save an animation as MP4, a TIFF of several pages as PDF, or send the frames one by one",
    )


def _changes(image: DecodedImage, mode: str, alpha: bool, carried: Sequence[str]) -> list[str]:
    """What the output has otherwise than the file that was sent."""
    notes = [] if image.format == "PNG" else [f"{image.format} became PNG, which keeps every other pixel as it was"]
    if alpha:
        notes.append("the output has no transparency: it lies on white, and colours hidden under transparency are gone")
    if mode.startswith(("I", "F")):
        notes.append("16 bits a channel became 8")
    elif mode in ("CMYK", "LAB"):
        notes.append(f"{mode} became RGB")
    if image.rotated:
        notes.append("the picture was turned upright as its EXIF says; boxes are of the upright picture")
    if image.format == "MPO":
        notes.append("the file held further pictures (such as a depth or gain map): they are gone")
    if carried:
        notes.append(f"removed with all metadata: {', '.join(carried)}")
    return notes
