"""The shapes of documents and of what was read of them, for every check that judges what was read.

Owns no way of reading: document_reading.py looks what a source is, page_documents.py and sound_documents.py read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from sam2_mcp_worker.checks.reading import Kind, Reading
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.jobs import Job, Progress
from sam2_mcp_worker.media.video import VideoFacts
from sam2_mcp_worker.pipelines.frame_looks import VideoLooks
from sam2_mcp_worker.pipelines.reading_choice import Mode
from sam2_mcp_worker.pipelines.transcript import Transcript
from sam2_mcp_worker.spending import Unit, Usage
from sam2_mcp_worker.uploads import StoredFile

UNREAD_INK = "it looks like text, and nobody could read it"
NOT_REACHED = "not reached yet"
NOT_ASKED = "not asked for"


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """What is to be read: exactly one of `source` and `text`. `pages` ('1-3,7') and `password` are for PDFs."""

    source: str = ""
    text: str = field(default="", repr=False)
    pages: str = ""
    password: str = field(default="", repr=False)
    mode: Mode = "auto"


class Document(Protocol):
    """Something that can be read; opened, not read yet.

    `key` identifies content, password, pages, mode and engines: cursors and caches of a check hold it. `file` is None
    for text that was given as such.
    """

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def file(self) -> StoredFile | None: ...

    @property
    def key(self) -> str: ...

    async def read(
        self, deadline: Deadline, *, began_with: str = "", retry: bool = True, progress: Progress | None = None
    ) -> ReadDocument:
        """What is read by the deadline; the rest goes on in the background, for the next call.

        Args:
            began_with: that of the result before, where a request goes on; empty at its beginning.
            retry: whether what failed before is tried again: not where a request goes on.

        Raises:
            WorkerError: nothing of it can be read.
        """


@dataclass(frozen=True, slots=True)
class VideoReading:
    """What the frames of a video showed."""

    facts: VideoFacts
    looks: VideoLooks


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """What was read of a document by now.

    `coverage` is of its parts: pages of a PDF, tiles of a picture, stretches of sound, segments of a video. `engine`
    says for people who read. `began_with` belongs into the cursor. `spent` is by `unit`, since the call before.
    `video` is what the frames of a video showed, `transcript` what was heard in sound.
    """

    document: Document
    reading: Reading
    coverage: Coverage[int, Any]
    engine: str
    notes: tuple[str, ...] = ()
    began_with: str = ""
    spent: dict[int, Usage] = field(default_factory=dict)
    unit: Unit = "page"
    video: VideoReading | None = None
    transcript: Transcript | None = None

    @property
    def complete(self) -> bool:
        """Whether every part was read or failed, so that going on brings nothing."""
        return self.coverage.complete


def settled_parts(job: Job) -> Coverage[int, Any]:
    """What became of a job's items by now; the job's own coverage grows while one looks at it."""
    return Coverage(job.coverage.items, dict(job.coverage.done), dict(job.coverage.failed))
