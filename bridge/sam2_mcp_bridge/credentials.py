"""Tokens and further headers, checked before they can reach the wire.

Owns their files and what may stand in them. No error text repeats what a file or a variable holds: the station logs
what the bridge complains about.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sam2_mcp_bridge.errors import EXIT_STARTUP, SetupError

# Servers refuse more than that in all headers together (uvicorn 64 KiB, nginx 32 KiB, node 16 KiB).
MAX_FILE_BYTES = 64 * 1024

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]+")

# What the bridge or HTTP itself sets; a second value would break the exchange or lie about it.
_OWN_HEADERS = frozenset(
    {
        *("accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect"),
        *("host", "keep-alive", "last-event-id", "proxy-authorization", "proxy-connection", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    }
)
_OWN_PREFIXES = ("mcp-", "sam2-mcp-")


def token(text: str) -> str:
    """The token without the white space around it.

    Raises:
        ValueError: it is no single printable word.
    """
    word = text.strip()
    if not word or not word.isascii() or not word.isprintable() or " " in word:
        raise ValueError("must be one word of printable ASCII characters")
    return word


def token_file(name: str) -> str:
    """The token in a file.

    Raises:
        SetupError: the file cannot be read.
        ValueError: it does not hold one token.
    """
    return token(read_text(name))


def header_file(name: str) -> tuple[tuple[str, str], ...]:
    """The headers in a file: one `Name: value` a line; blank lines and lines that begin with # are left out.

    Raises:
        SetupError: the file cannot be read.
        ValueError: a line is no header, or one that must stay the bridge's own; the text gives the line's number.
    """
    headers: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(re.split(r"\r?\n", read_text(name)), 1):
        if line.strip() and not line.startswith("#"):
            key, value = _header(number, line)
            if key.lower() in headers:
                raise ValueError(f"line {number}: the header {key} is there twice")
            headers[key.lower()] = key, value
    if not headers:
        raise ValueError("the file holds no header; write lines such as X-Api-Key: value")
    return tuple(headers.values())


def _header(number: int, line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    value = value.strip(" \t")
    if not colon or not _HEADER_NAME.fullmatch(name):
        raise ValueError(f"line {number}: must look like Name: value")
    if not _HEADER_VALUE.fullmatch(value):
        raise ValueError(f"line {number}: the value of {name} must be printable ASCII characters, at least one")
    if name.lower() in _OWN_HEADERS or name.lower().startswith(_OWN_PREFIXES):
        raise ValueError(f"line {number}: the header {name} is set by the bridge itself")
    return name, value


def read_text(name: str) -> str:
    """A small file of UTF-8 text, with or without a byte order mark.

    Raises:
        SetupError: the file cannot be read.
        ValueError: it is too large, or not UTF-8.
    """
    try:
        with Path(os.path.expanduser(name)).open("rb") as file:  # noqa: PTH111 - Path's raises for an unknown user
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise SetupError(f"cannot read the file {name}: {error.strerror}", EXIT_STARTUP) from error
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"the file is larger than {MAX_FILE_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # What > of Windows PowerShell writes is UTF-16.
        raise ValueError("the file is not UTF-8; in PowerShell write it with Set-Content -Encoding ascii") from None
