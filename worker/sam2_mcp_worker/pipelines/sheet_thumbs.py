"""Small pictures of the first frames that a job reads, made while their readers wait: the contact sheet of a short
video then needs no second decoding. They stay in memory, 4 MB at most, and go with the job.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.media.exposure_sheets import MAX_CELLS, write_thumb
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.services import Services

# A cell of the sheet is narrower than this as soon as there are three columns.
THUMB_PX = 640
_NOTE = "sheet_thumbs"

logger = logging.getLogger(__name__)


class SheetThumbs:
    """Keeps the small pictures of one job. Of more frames than a sheet has cells nobody knows which will be wanted."""

    def __init__(self, services: Services, job: Job) -> None:
        self._services = services
        self._job = job
        self._begun = 0
        self._kept: dict[float, bytes] = job.notes.setdefault(_NOTE, {})

    async def keep(self, time_s: float, pixels: PixelFile) -> None:
        """Keep the frame of this time, if there is room; what goes wrong with it costs nothing but itself."""
        if self._begun >= MAX_CELLS:
            return
        self._begun += 1
        try:
            with self._services.work_directory("thumb") as work:
                path = work / "thumb.jpg"
                await write_thumb(
                    self._services.decoders,
                    pixels,
                    path,
                    side_px=THUMB_PX,
                    timeout_s=self._services.settings.step_timeout_s,
                    job=self._job.key,
                )
                self._kept[_key(time_s)] = await asyncio.to_thread(path.read_bytes)
        except (WorkerError, OSError) as error:
            logger.info("no small picture of a frame: %s", getattr(error, "code", type(error).__name__))


def kept_thumb(job: Job, time_s: float) -> bytes | None:
    """The JPEG of the frame of that time, if the job kept one."""
    kept: Mapping[float, bytes] = job.notes.get(_NOTE, {})
    return kept.get(_key(time_s))


def _key(time_s: float) -> float:
    """Times are told with six decimals."""
    return round(time_s, 5)
