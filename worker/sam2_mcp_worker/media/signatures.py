"""What the first bytes of a picture or a sound say it is, and strict Base64. Pure, and light.

A right signature proves neither a whole nor a safe file; decoding in a child (picture_checks.py) comes after it.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import PurePath

from sam2_mcp_worker.errors import WorkerError

# Enough for every signature here.
HEAD_BYTES = 16

_PLAIN = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"fLaC": "audio/flac",
    b"OggS": "audio/ogg",
    b"ID3": "audio/mpeg",
}
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
# Other names in use for the same types.
_ALIASES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
}
_ALIASES |= {"audio/mp3": "audio/mpeg", "audio/x-flac": "audio/flac", "application/ogg": "audio/ogg"}
_SUFFIXES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_SUFFIXES |= {
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".flac": "audio/flac",
    ".ogg": "audio/ogg",
    ".opus": "audio/ogg",
}
KNOWN_TYPES = frozenset({*_PLAIN.values(), *_RIFF.values()})


def media_type_of(head: bytes) -> str | None:
    """The MIME type that the first bytes of a file show; None for what no result may carry."""
    for signature, mime_type in _PLAIN.items():
        if head.startswith(signature):
            return mime_type
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12])
    return "audio/mpeg" if _is_mp3_frame(head) else None


def _is_mp3_frame(head: bytes) -> bool:
    """Whether a frame of MPEG audio layer III begins here (ISO 11172-3, 2.4.1.3), as in an MP3 without tags."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    bitrate, rate = head[2] >> 4, head[2] >> 2 & 3
    return version != 1 and layer == 1 and bitrate not in (0, 15) and rate != 3


def check_type(data: bytes, declared: str) -> None:
    """See that the signature is that of the declared type.

    Raises:
        WorkerError: media_type_mismatch.
    """
    found, plain = media_type_of(data[:HEAD_BYTES]), plain_type(declared)
    if found is None or found != plain:
        raise WorkerError(
            "media_type_mismatch",
            f"declared is {plain[:60] or 'no type'}, the first bytes are those of {found or 'nothing known'}",
            rule="the signature must be that of the declared type",
        )


def plain_type(declared: str) -> str:
    """A Content-Type without parameters, under the name that is used here."""
    plain = declared.partition(";")[0].strip().lower()
    return _ALIASES.get(plain, plain)


def type_of_name(name: str) -> str | None:
    """The type that a file's name promises; None for names that promise none of ours."""
    return _SUFFIXES.get(PurePath(name).suffix.lower())


def base64_chars(size_bytes: int) -> int:
    """Characters that this many bytes take in Base64."""
    return 4 * -(-size_bytes // 3)


def decode_strictly(text: str, max_bytes: int) -> bytes:
    """The bytes of a block's `data`.

    Standard alphabet, padded, no data: prefix, no white space, and no second way to write the same bytes.

    Raises:
        WorkerError: base64_too_long (before anything is decoded), base64_invalid.
    """
    if len(text) > base64_chars(max_bytes):
        raise WorkerError(
            "base64_too_long",
            f"{len(text)} characters",
            rule=f"at most {base64_chars(max_bytes)} for {max_bytes} bytes",
        )
    if text[:5].lower() == "data:":
        raise _invalid("it begins with data:, which is a URI and no Base64")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid(str(error)) from error
    if base64.b64encode(data) != text.encode("ascii"):
        raise _invalid("the bits behind the last byte are not 0")
    return data


def _invalid(what: str) -> WorkerError:
    return WorkerError(
        "base64_invalid", f"the data is no strict Base64: {what}", rule="A-Z a-z 0-9 + / and padding, nothing else"
    )
