"""Opens video files from outside in a decoder child, so that nothing but the file itself is ever read.

Owns which containers are accepted and what is said of everything else. Three locks against files that name other files
or addresses (HLS, DASH, concat, SDP, QuickTime references): the demuxer is one of a list of self-contained ones; no
protocol is allowed; and whatever libavformat still wants to open goes to a function that refuses.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
from av.container import InputContainer
from av.stream import Disposition
from av.video.stream import VideoStream

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.webp_video import as_film, is_animated_webp

# Demuxers whose files hold all of their data. Pure audio is among them only to be named; playlists, picture lists,
# capture devices, scripts and subtitles are not among them.
CONTAINERS = (
    *("mov", "matroska", "avi", "mpegts", "mpeg", "flv", "asf", "ogg", "mxf", "nut", "ivf", "rm", "wtv", "dv", "nsv"),
    *(
        "gif",
        "apng",
        "yuv4mpegpipe",
        "h264",
        "hevc",
        "av1",
        "obu",
        "m4v",
        "mpegvideo",
        "swf",
        "4xm",
        "bink",
    ),
    *("mp3", "wav", "flac", "aac", "ac3", "eac3", "amr", "aiff", "w64", "caf", "ape", "wv", "tta", "dts", "au"),
)
# In the order a viewer names them; the longest list that fits an error text.
ACCEPTED = "MP4, MOV, WebM, MKV, AVI, MPEG-TS, MPEG, FLV, WMV, OGV, MXF, GIF, animated WebP"
# Bytes per read of the container. Larger ones cost more after each seek than they save.
_BUFFER_BYTES = 128 * 1024
# Two cores; more threads keep more frames in memory and are no faster.
DECODER_THREADS = 2
# 8192 x 4320 px. A frame takes 53 MB at 4:2:0 and a decoder keeps up to 17: about half of a child's memory.
MAX_FRAME_PIXELS = 8192 * 4320
# An error text of libavformat: enough to see what was wrong.
_REASON_CHARS = 120

# What people send by mistake, recognised to say so.
_SIGNATURES = {
    b"%pdf-": "a PDF",
    b"#extm3u": "an HLS playlist, which only names other files",
    b"ffconcat": "a list of other files (ffconcat)",
    b"[playlist]": "a playlist, which only names other files",
    b"v=0": "a session description (SDP), which only names network addresses",
    b"<svg": "an SVG drawing",
    b"<?xml": "an XML file, perhaps a DASH manifest, which only names other files",
    b"<mpd": "a DASH manifest, which only names other files",
    b"<!doc": "an HTML page",
    b"<html": "an HTML page",
    b"pk\x03\x04": "a ZIP archive or office document",
    b"\x89png": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
}
# What takes files that are no recordings: to convert them would show nothing that moves.
_OTHER_TOOLS = {"PDF": "Use inspect_pdf for it", "picture": "Use inspect_image, read_text or segment_image for it"}
_PICTURE_BRANDS = (b"heic", b"heix", b"mif1", b"msf1", b"avif")


@dataclass(frozen=True, slots=True)
class Wording:
    """How a file that cannot be opened is spoken of: `thing` is what it was expected to be."""

    thing: str
    damaged_code: str
    unsupported_code: str
    accepted: str
    convert_to: str

    def damaged(self, what: str, error: Exception | None = None) -> WorkerError:
        """The error for a file of the right kind that cannot be read."""
        reason = getattr(error, "strerror", None) or error
        detail = f" ({str(reason)[:_REASON_CHARS]})" if error is not None else ""
        return WorkerError(
            self.damaged_code, what + detail, next_step="Upload the file again, or save it anew with another program"
        )


VIDEO = Wording("video", "video_damaged", "unsupported_video", ACCEPTED, "MP4")


@dataclass(frozen=True, slots=True)
class OpenVideo:
    """An open file and its picture track. `stands_for` names the format when this is only its translation."""

    container: InputContainer
    stream: VideoStream
    stands_for: str = ""


@contextmanager
def open_video(path: Path, max_pixels: int = MAX_FRAME_PIXELS) -> Iterator[OpenVideo]:
    """The file with its best picture track, ready to be decoded.

    Raises:
        WorkerError: video_damaged, unsupported_video, no_video_stream, video_too_large.
    """
    with path.open("rb") as given:
        webp = is_animated_webp(given.peek(64)[:64])
        with as_film(path, max_pixels) if webp else nullcontext(given) as file, open_container(file) as container:
            yield _prepared(container, max_pixels, "webp" if webp else "")


def _prepared(container: InputContainer, max_pixels: int, stands_for: str) -> OpenVideo:
    stream = _picture_track(container)
    check_frame_pixels(stream.width, stream.height, max_pixels)
    stream.codec_context.thread_count = DECODER_THREADS
    stream.codec_context.thread_type = "AUTO"
    # For sizes that the header does not tell: the decoder refuses them before it allocates.
    stream.codec_context.options = {"max_pixels": str(max_pixels)}
    return OpenVideo(container, stream, stands_for)


def check_frame_pixels(width_px: int, height_px: int, max_pixels: int) -> None:
    """Raise `video_too_large` for frames of more pixels than allowed."""
    if width_px * height_px > max_pixels:
        raise WorkerError(
            "video_too_large",
            f"the frames are {width_px} x {height_px} px = {width_px * height_px / 1e6:.0f} MP",
            rule=f"at most {max_pixels / 1e6:.0f} MP",
            next_step="Scale the video down, 1920 x 1080 px is plenty",
        )


def encrypted() -> WorkerError:
    """The error for pictures that only a licence opens."""
    return WorkerError(
        "video_encrypted",
        "the pictures of this video are encrypted (DRM)",
        next_step="Use a copy that plays without a licence",
    )


def damaged(what: str, error: Exception | None = None) -> WorkerError:
    """The error for a file that is a video and cannot be read."""
    return VIDEO.damaged(what, error)


class _OwnBytes(io.RawIOBase):
    """The file without its name, so that nothing is concluded from a suffix."""

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def _refuse(url: str, flags: int, options: dict[str, Any]) -> None:
    raise PermissionError("a video may not open other files")


@contextmanager
def open_container(file: io.BufferedReader, wording: Wording = VIDEO) -> Iterator[InputContainer]:
    """The file behind the three locks, opened and looked into.

    Raises:
        WorkerError: the two codes of the wording.
    """
    head = file.peek(64)[:64]
    if not head:
        raise WorkerError(wording.damaged_code, "the file is empty (0 bytes)", next_step="Upload the file again")
    try:
        container = av.open(
            _OwnBytes(file),
            "r",
            buffer_size=_BUFFER_BYTES,
            io_open=_refuse,
            container_options={"format_whitelist": ",".join(CONTAINERS), "protocol_whitelist": "none"},
            metadata_errors="replace",
        )
    except (av.FFmpegError, ValueError, OSError) as error:
        raise _unreadable(head, error, wording) from error
    with container:
        yield container


def _unreadable(head: bytes, error: Exception, wording: Wording) -> WorkerError:
    if head[4:8] == b"ftyp" and head[8:12] not in _PICTURE_BRANDS:
        what = "the index of this MP4 is missing or broken: the recording or the upload was cut off"
        return wording.damaged(what, error)
    if head[:4] in (b"\x1a\x45\xdf\xa3", b"FLV\x01") or head[8:11] == b"AVI":
        return wording.damaged(f"the beginning of this {wording.thing} cannot be read", error)
    guess = _guess(head, wording.thing)
    return WorkerError(
        wording.unsupported_code,
        f"the file is {guess}",
        rule=f"accepted are {wording.accepted}",
        next_step=_OTHER_TOOLS.get(guess.split()[-1], f"Convert it to {wording.convert_to}"),
        private=repr(error),
    )


def _guess(head: bytes, thing: str) -> str:
    if head[4:8] == b"ftyp" or head[8:12] == b"WEBP":
        return "a picture"
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for signature, name in _SIGNATURES.items():
        if start.startswith(signature):
            return name
    return f"not a {thing} that is known here, or its beginning is damaged"


def picture_tracks(container: InputContainer) -> list[VideoStream]:
    """Tracks of moving pictures: a cover is none."""
    return [s for s in container.streams.video if not s.disposition & Disposition.attached_pic]


def best_picture_track(container: InputContainer) -> VideoStream | None:
    """The track that is looked at, whose first frame is 0 on every clock; None where nothing here decodes any."""
    known = [track for track in picture_tracks(container) if track.codec_context is not None]
    best = container.streams.best("video")
    return best if isinstance(best, VideoStream) and best in known else next(iter(known), None)


def _picture_track(container: InputContainer) -> VideoStream:
    best = best_picture_track(container)
    if best is not None:
        return best
    if picture_tracks(container):
        raise WorkerError(
            "unsupported_video",
            f"nothing here decodes the pictures of this video ({container.format.long_name})",
            next_step="Convert it to MP4 with H.264",
        )
    held = "only sound" if container.streams.audio else "neither pictures nor sound"
    raise WorkerError(
        "no_video_stream",
        f"the file ({container.format.long_name}) holds {held}",
        next_step="Send a file that has a picture track; transcribe_audio hears what is said",
    )
