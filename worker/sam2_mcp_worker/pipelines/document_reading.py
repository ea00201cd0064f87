"""From a tool's `source` or `text` to a document that can be read: a text, picture, PDF, recording or video.

What an inspection has read costs nothing here: the same jobs and caches serve both.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass

from sam2_mcp_worker.checks.reading import Kind, Reading, ReadLine, ReadPage
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.jobs import Progress
from sam2_mcp_worker.media.file_kinds import KIND_HEAD_BYTES, kind_of, unsupported
from sam2_mcp_worker.media.text_files import decode_text
from sam2_mcp_worker.pipelines.image_facts import describe_image
from sam2_mcp_worker.pipelines.page_documents import PdfDocument, PictureDocument
from sam2_mcp_worker.pipelines.pdf_job import open_pdf
from sam2_mcp_worker.pipelines.read_documents import Document, ReadDocument, ReadRequest
from sam2_mcp_worker.pipelines.reading_choice import Mode
from sam2_mcp_worker.pipelines.recording import describe_sound
from sam2_mcp_worker.pipelines.sound_documents import SoundDocument, VideoDocument
from sam2_mcp_worker.pipelines.video_facts import facts_of
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

__all__ = ["Document", "ReadDocument", "ReadRequest", "TextDocument", "open_document"]

# A leaflet of 100 dense pages; a judge goes through that in a second. An argument of this size fits into a request.
MAX_TEXT_CHARS = 600_000
GIVEN_NAME = "text"
# UTF-16 and CP949 take two bytes for a letter, UTF-8 three.
MAX_TEXT_BYTES = 3 * MAX_TEXT_CHARS


@dataclass(frozen=True, slots=True)
class TextDocument:
    """Text that was given as such or stands in a text file; nothing has to be read."""

    text: str
    stored: StoredFile | None = None

    @property
    def name(self) -> str:
        """Of the file; a word of ours for text that has none."""
        return self.stored.name if self.stored else GIVEN_NAME

    @property
    def kind(self) -> Kind:
        """Text."""
        return "text"

    @property
    def file(self) -> StoredFile | None:
        """The file it stands in, if it stands in one."""
        return self.stored

    @property
    def key(self) -> str:
        """As `Document`."""
        return cache_key("read_lines", hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest())

    async def read(
        self, deadline: Deadline, *, began_with: str = "", retry: bool = True, progress: Progress | None = None
    ) -> ReadDocument:
        """As `Document`."""
        # Empty ones too: a line is named by its number.
        lines = tuple(ReadLine(line, "text") for line in self.text.splitlines())
        reading = Reading("text", "line", (ReadPage(1, "done", lines),))
        return ReadDocument(self, reading, Coverage((1,), {1: None}), "text as given")


async def open_document(services: Services, request: ReadRequest) -> Document:
    """The document that is asked for.

    Raises:
        WorkerError: both or none of source and text are given, the source is wrong, or the file is of no kind that can
            be read, damaged or locked.
    """
    source, text = request.source.strip(), request.text
    if bool(source) == bool(text.strip()):
        raise WorkerError(
            "nothing_to_read" if not source else "two_sources",
            "neither source nor text was given" if not source else "both source and text were given",
            rule="exactly one of them says what is checked; an empty text says nothing about what is missing in it",
            next_step="give source (file_... handle, path or https URL) or text",
        )
    if not source:
        _refuse_pages(request, "text")
        # JSON may hold halves of letters, which nothing that is written or sent can carry.
        return TextDocument(_bounded(text.encode("utf-8", "replace").decode("utf-8")))
    stored = await services.sources.resolve(source)
    return await open_stored(services, stored, request)


async def open_stored(services: Services, stored: StoredFile, request: ReadRequest) -> Document:
    """As `open_document`, for a stored file."""
    kind = kind_of(await asyncio.to_thread(_head, stored), stored.name)
    if kind == "pdf":
        return PdfDocument(await open_pdf(services, stored, request.pages, request.password), request.mode)
    _refuse_pages(request, f"{stored.name!r}, which is no PDF")
    if kind == "office":
        raise unsupported("an office file, whose pages only its own program lays out")
    if kind == "image":
        return await _picture(services, stored, request.mode)
    if kind in ("text", "csv"):
        return TextDocument(await asyncio.to_thread(_text_of, stored), stored)
    if kind == "sound":
        return SoundDocument(services, await describe_sound(services, stored))
    return await _video_or_sound(services, stored, request.mode)


async def _picture(services: Services, stored: StoredFile, mode: Mode) -> Document:
    """A picture, or an animation, of which all frames are looked at."""
    image = await describe_image(services, stored)
    if image.frames != 1:
        try:
            facts = await facts_of(services, stored)
        except WorkerError:
            return PictureDocument(services, stored, image, mode)  # pages of a TIFF: the reading says what it lacks
        return VideoDocument(services, stored, facts, mode)
    return PictureDocument(services, stored, image, mode)


async def _video_or_sound(services: Services, stored: StoredFile, mode: Mode) -> Document:
    try:
        facts = await facts_of(services, stored)
    except WorkerError as error:
        if error.code != "no_video_stream":
            raise
        return SoundDocument(services, await describe_sound(services, stored))
    if not facts.audio_codec:
        return VideoDocument(services, stored, facts, mode)
    try:
        sound = SoundDocument(services, await describe_sound(services, stored))
    except WorkerError as error:  # what the frames show can be judged all the same
        return VideoDocument(services, stored, facts, mode, sound_trouble=error.reason)
    return VideoDocument(services, stored, facts, mode, sound)


def _refuse_pages(request: ReadRequest, what: str) -> None:
    """Asked pages that would be passed over silently are pages that were not read."""
    if request.pages.strip():
        raise WorkerError(
            "pages_not_for_this",
            f"pages={request.pages[:40]!r} was given for {what}",
            rule="only a PDF has pages to choose from",
            next_step="leave pages out",
        )


def _head(stored: StoredFile) -> bytes:
    with stored.path.open("rb") as file:
        return file.read(KIND_HEAD_BYTES)


def _text_of(stored: StoredFile) -> str:
    if stored.size_bytes > MAX_TEXT_BYTES:
        raise _too_long(f"the text file has {stored.size_bytes} bytes", f"at most {MAX_TEXT_BYTES} bytes")
    return _bounded(decode_text(stored.path.read_bytes()).text)


def _bounded(text: str) -> str:
    if len(text) > MAX_TEXT_CHARS:
        raise _too_long(f"the text has {len(text)} characters", f"at most {MAX_TEXT_CHARS} characters")
    return text


def _too_long(what: str, rule: str) -> WorkerError:
    return WorkerError("text_too_long", what, rule=rule, next_step="check its parts one by one")
