"""All that was read of a document for a check: its pages or frames, and of a video its sound, read side by side."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from sam2_mcp_worker.checks.reading import Reading, ReadPage
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import Progress
from sam2_mcp_worker.pipelines.read_documents import Document, ReadDocument
from sam2_mcp_worker.pipelines.sound_documents import VideoDocument

# Reading ends so much before the call's end, at most this share of it: judging 100 pages takes about a second.
JUDGE_S = 3.0
JUDGE_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Gathered:
    """All that was read of a document: its pages or frames, and of a video its sound.

    `sound_trouble` says why the sound of a video could not be gone through; with neither there is none.
    """

    main: ReadDocument
    sound: ReadDocument | None = None
    sound_trouble: str = ""

    @property
    def readings(self) -> tuple[Reading, ...]:
        """What was read, for judges of single wordings."""
        return (self.main.reading, *([self.sound.reading] if self.sound is not None else []))

    @property
    def heard(self) -> ReadDocument | None:
        """The sound, of a recording itself."""
        return self.sound or (self.main if self.main.reading.kind == "sound" else None)

    @property
    def joined(self) -> Reading:
        """Everything as one reading, the sound as a further page, also sound that nobody could go through."""
        pages = [page for reading in self.readings for page in reading.pages]
        if self.sound_trouble:
            pages.append(ReadPage(1, "failed", reason=self.sound_trouble))
        elif self.sound is None:
            return self.main.reading
        numbered = tuple(replace(page, number=number) for number, page in enumerate(pages, start=1))
        return replace(self.main.reading, pages=numbered)


def sound_key(document: Document) -> str:
    return document.sound.key if isinstance(document, VideoDocument) and document.sound is not None else ""


async def gather(
    document: Document, began_with: str, deadline: Deadline, retry: bool, progress: Progress | None
) -> Gathered:
    """What is read by now: of a video its frames and its sound, side by side."""
    until = Deadline(deadline.at_s - min(JUDGE_S, JUDGE_SHARE * deadline.remaining_s()), deadline.clock)
    main = document.read(until, began_with=began_with, retry=retry, progress=progress)
    if not isinstance(document, VideoDocument) or document.sound is None:
        trouble = document.sound_trouble if isinstance(document, VideoDocument) else ""
        return Gathered(await main, sound_trouble=trouble)
    seen, heard = await asyncio.gather(main, document.sound.read(until, retry=retry), return_exceptions=True)
    if isinstance(seen, BaseException):
        raise seen
    if isinstance(heard, WorkerError):
        return Gathered(seen, sound_trouble=heard.reason)
    if isinstance(heard, BaseException):
        raise heard
    return Gathered(seen, heard)
