"""What the inspection of a video leaves for people: a time line, a contact sheet and an HTML report, one artifact each.

They are made in the background, anew when much more is known than before and once more when all is; a call waits for
them as long as it can. The same findings have the same artifacts, also after a restart. A result never depends on them.
"""

from __future__ import annotations

import asyncio
import datetime
import hashlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sam2_mcp_worker.artifacts import INSPECTED, Artifact
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.disk import storage_errors
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.media.exposure_sheets import SheetCell, TimeLine, draw_exposures, draw_scenes
from sam2_mcp_worker.media.video import read_thumbnails
from sam2_mcp_worker.pipelines.artifact_keeping import kept_artifact
from sam2_mcp_worker.pipelines.inspected_video import InspectedVideo
from sam2_mcp_worker.pipelines.sheet_thumbs import kept_thumb
from sam2_mcp_worker.pipelines.video_cells import Cell, choose_cells
from sam2_mcp_worker.pipelines.video_report import ReportPictures, render_video_report
from sam2_mcp_worker.pipelines.video_rows import time_line
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services

# Raise it whenever a picture or the report looks different: it is part of their keys.
ARTIFACTS_VERSION = 1
# Of the time kept free for the answer: the rest is for packing and sending it.
MARGIN_SHARE = 0.4
# Forty frames of an hour of 1080p, one GOP of 10 s for each, take about 30 s of a core; of files with longer GOPs the
# sheet has what was decoded by then.
SHEET_LIMIT_S = 90.0
# The sheet is 1,600 px wide: frames that stand alone on it are not drawn larger than that, and many are far smaller.
SHEET_WIDTH_PX = 1600

LATER = "pictures and report of this state are still being made: the same call will have them"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VideoArtifacts:
    """The artifacts that are ready; `notes` say why others are not, or what they lack."""

    time_line: Artifact | None = None
    contact_sheet: Artifact | None = None
    report: Artifact | None = None
    notes: tuple[str, ...] = ()

    @property
    def ready(self) -> list[Artifact]:
        """All that are there."""
        return [one for one in (self.time_line, self.contact_sheet, self.report) if one]


@dataclass(slots=True)
class _Record:
    """What was made last for a job's findings, and from how much."""

    state: tuple[object, ...] = ()
    frames: int = 0
    made: VideoArtifacts = field(default_factory=VideoArtifacts)


async def make_video_artifacts(
    services: Services, job: Job, inspected: InspectedVideo, deadline: Deadline
) -> VideoArtifacts:
    """The artifacts as of now, or nearly; see the module. Never raises what is wrong with them: `notes` say it.

    Waits until the deadline and a part of the margin behind it; what takes longer is made on, for the next call.

    Args:
        job: of the inspection; it is asked for nothing but what it remembers.
    """
    asked = cache_key("video_artifacts", job.key, *_names(inspected))
    record: _Record = job.notes.setdefault(asked, _Record())
    limit = Deadline(deadline.at_s + deadline.margin_s * MARGIN_SHARE, deadline.clock)

    async def start(making: Job) -> None:
        making.again = True  # it is done as often as there is more to show
        record.made = await _Making(services, job, inspected).run(record.made.report)
        record.state, record.frames = _state(inspected), len(inspected.looks.looks)

    while not _fresh_enough(services, record, inspected):
        async with services.jobs.join(asked, (1,), start, retry=True) as making:
            assert making.task is not None
            await asyncio.wait({making.task}, timeout=limit.remaining_s())
            if not making.finished or making.error is not None:
                return replace(record.made, notes=(*record.made.notes, LATER))
    return record.made


def _names(inspected: InspectedVideo) -> tuple[list[str], list[str]]:
    """Calls that share a job may ask for other phrases."""
    findings = inspected.findings
    return [one.label for one in findings.labels], [one.phrase for one in findings.phrases]


def _state(inspected: InspectedVideo) -> tuple[object, ...]:
    """Changes whenever more or better is known."""
    looks = inspected.looks
    failed = sum(bool(one.failed) for one in looks.looks)
    partly = sum(bool(one.partly) for one in looks.looks)
    not_looked = sum(one.regions is None for one in looks.looks)
    return len(looks.looks), failed, partly, not_looked, looks.failed, looks.unreached, inspected.notes


def _fresh_enough(services: Services, record: _Record, inspected: InspectedVideo) -> bool:
    """Whether the last ones will do: they have everything, or at least half of what there is and more is to come.

    They state their own coverage, so older ones hide nothing.
    """
    if not record.state or not all(services.artifacts.holds(one.handle) for one in record.made.ready):
        return False
    if not inspected.looks.complete and 2 * record.frames > len(inspected.looks.looks):
        return True
    return record.state == _state(inspected)


class _Making:
    """All artifacts of one state."""

    def __init__(self, services: Services, job: Job, inspected: InspectedVideo) -> None:
        self._services = services
        self._job = job
        self._inspected = inspected
        self._stem = Path(inspected.stored.name).stem[:80] or "video"
        self._notes: list[str] = []

    async def run(self, report: Artifact | None) -> VideoArtifacts:
        """Make what can be made; `report` is the one of an earlier state, whose address is kept."""
        line, sheet = await asyncio.gather(
            self._or_note("time line", self._time_line), self._or_note("contact sheet", self._contact_sheet)
        )

        async def write() -> Artifact:
            return await self._report(line, sheet, report)

        return VideoArtifacts(line, sheet, await self._or_note("report", write), tuple(self._notes))

    async def _or_note(self, what: str, make: Callable[[], Awaitable[Artifact | None]]) -> Artifact | None:
        try:
            return await make()
        except WorkerError as error:
            self._notes.append(f"the {what} could not be made ({error.reason})")
        except TimeoutError:
            self._notes.append(f"the {what} could not be made in time")
        except Exception as error:  # these are beside the result: whatever is wrong with them must not cost it
            logger.warning("%s not made: %s", what, type(error).__name__, exc_info=not isinstance(error, OSError))
            self._notes.append(f"the {what} could not be made")
        return None

    async def _time_line(self) -> Artifact:
        def plan() -> tuple[TimeLine, str]:
            line = time_line(self._inspected.looks, self._inspected.findings)
            return line, cache_key("video_time_line", ARTIFACTS_VERSION, line.to_params())

        line, key = await asyncio.to_thread(plan)  # an hour has thousands of exposures

        async def make() -> Artifact:
            with self._services.work_directory("time_line") as work:
                out_path = work / "line.jpg"
                await draw_exposures(
                    self._services.decoders, line, out_path, timeout_s=self._timeout_s, job=self._job.key
                )
                return await self._adopt(out_path, "time-line.jpg")

        return await kept_artifact(self._services, key, make)

    async def _contact_sheet(self) -> Artifact | None:
        cells = await asyncio.to_thread(choose_cells, self._inspected.looks, self._inspected.findings)
        if not cells:
            return None
        drawn = [[cell.time_s, [[box.kind, box.number, box.box_xyxy_px] for box in cell.boxes]] for cell in cells]
        key = cache_key("video_sheet", ARTIFACTS_VERSION, self._inspected.stored.sha256, drawn)
        sheet = await kept_artifact(self._services, key, lambda: self._draw_sheet(cells))
        shown = sheet.facts.get("frames", len(cells))
        if shown < len(cells):
            self._notes.append(
                f"the contact sheet shows {shown} of {len(cells)} frames: the others could not be decoded again"
            )
        return sheet

    async def _draw_sheet(self, cells: list[Cell]) -> Artifact:
        facts = self._inspected.facts
        with self._services.work_directory("contact_sheet") as work:
            small = await self._small_pictures(cells, work)
            if not small:
                raise WorkerError("frame_damaged", "none of its frames could be decoded again")
            out_path = work / "sheet.jpg"
            await draw_scenes(
                self._services.decoders,
                small,
                facts.width_px,
                out_path,
                timeout_s=self._timeout_s,
                job=self._job.key,
            )
            return await self._adopt(out_path, "contact-sheet.jpg", {"frames": len(small)})

    async def _small_pictures(self, cells: list[Cell], work: Path) -> list[SheetCell]:
        """Those that the job kept, and the others decoded again, as many as come in time."""
        found: list[SheetCell] = []
        others: list[Cell] = []
        for number, cell in enumerate(cells):
            jpeg = kept_thumb(self._job, cell.time_s)
            if jpeg is None:
                others.append(cell)
            else:
                path = work / f"kept-{number}.jpg"
                await asyncio.to_thread(path.write_bytes, jpeg)
                found.append(SheetCell(cell.time_s, path, cell.boxes))
        try:
            await self._decode(others, work, max(1, round(len(cells) ** 0.5)), found)
        except (TimeoutError, WorkerError) as error:
            if not found:
                raise
            logger.info("a contact sheet has %d of %d frames: %s", len(found), len(cells), type(error).__name__)
        return sorted(found, key=lambda cell: cell.time_s)

    async def _decode(self, cells: list[Cell], work: Path, columns: int, found: list[SheetCell]) -> None:
        """Add frames as they come. Small pictures of all frames of an hour would take gigabytes: which ones are wanted
        is known only now.
        """
        frames = read_thumbnails(
            self._services.decoders,
            self._inspected.stored.path,
            self._inspected.facts,
            [cell.time_s for cell in cells],
            work,
            timeout_s=self._timeout_s,
            job=self._job.key,
            thumbnail_px=SHEET_WIDTH_PX // columns,
        )
        async with asyncio.timeout(SHEET_LIMIT_S), aclosing(frames):
            async for number, small in frames:
                found.append(SheetCell(cells[number].time_s, small, cells[number].boxes))

    async def _report(self, line: Artifact | None, sheet: Artifact | None, before: Artifact | None) -> Artifact:
        """The report; as long as more is to come, under the address that it had before."""

        def render(created_at: str) -> bytes:
            pictures = ReportPictures(self._bytes(line), self._bytes(sheet))
            return render_video_report(self._inspected, pictures, created_at).encode("utf-8", "replace")

        def store() -> Artifact:
            with storage_errors():
                return self._services.artifacts.put(
                    render(datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes")),
                    name=f"{self._stem}-report.html",
                    mime_type="text/html",
                    handle=before.handle if before else None,
                    facts={INSPECTED: self._inspected.stored.handle},
                )

        async def make() -> Artifact:
            return await asyncio.to_thread(store)

        if not self._inspected.looks.complete:
            return await make()
        digest = await asyncio.to_thread(lambda: hashlib.sha256(render("")).hexdigest())
        return await kept_artifact(self._services, cache_key("video_report", ARTIFACTS_VERSION, digest), make)

    def _bytes(self, picture: Artifact | None) -> bytes | None:
        try:
            return self._services.artifacts.get(picture.handle)[1].read_bytes() if picture else None
        except (WorkerError, OSError):
            return None  # swept meanwhile: the report says that there is none

    async def _adopt(self, path: Path, name: str, facts: dict[str, Any] | None = None) -> Artifact:
        about = {INSPECTED: self._inspected.stored.handle} | (facts or {})
        return await asyncio.to_thread(
            self._services.artifacts.adopt, path, name=f"{self._stem}-{name}", mime_type="image/jpeg", facts=about
        )

    @property
    def _timeout_s(self) -> float:
        return self._services.settings.step_timeout_s
