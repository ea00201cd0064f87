"""Settings from the command line and the environment, checked once. A flag beats its variable.

Owns names, defaults and limits. The token never shows in a repr and never in an error text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sam2_mcp_bridge import __version__
from sam2_mcp_bridge.errors import EXIT_STARTUP, EXIT_USAGE, SetupError

DEFAULT_URL = "http://127.0.0.1:8765/mcp"

# The station's clients give up after 30.0 s, and an answer that comes later is taken as the next call's. Own deadlines
# of up to 29.5 s were clean on an idle loopback (station.md 1.7 b4); 27 s leaves room for a busy host.
DEFAULT_DEADLINE_S = 27.0
MAX_STATION_DEADLINE_S = 29.0
# Other hosts wait as long as they like; a call that needs more than an hour is a job, and belongs behind a cursor.
MAX_DEADLINE_S = 3600.0
MIN_DEADLINE_S = 0.1

# The station's reader dies for good on a line of 16 MiB (station.md 1.7 c).
DEFAULT_MAX_ANSWER_BYTES = 8 * 2**20
HIGHEST_MAX_ANSWER_BYTES = 16 * 2**20 - 1024
# An error text with the longest id, every character escaped, must always fit.
LOWEST_MAX_ANSWER_BYTES = 32 * 1024

# How the host is treated. `auto` looks at its first request.
PROFILES = ("station", "full", "auto")

# Requests that are upstream at once in profile `full`; the worker's CPU decides how many of them run.
DEFAULT_MAX_PARALLEL_CALLS = 16
# Each costs a thread, a connection and a descriptor; sessions get 128 descriptors in the tightest sandbox we know.
HIGHEST_MAX_PARALLEL_CALLS = 64


@dataclass(frozen=True, slots=True)
class Config:
    url: str = DEFAULT_URL
    token: str | None = field(default=None, repr=False)
    deadline_s: float = DEFAULT_DEADLINE_S
    max_answer_bytes: int = DEFAULT_MAX_ANSWER_BYTES
    profile: str = "station"
    max_parallel_calls: int = DEFAULT_MAX_PARALLEL_CALLS
    share: tuple[Path, ...] = ()


def _url(text: str) -> str:
    parts = urlsplit(text)
    blank = any(character <= " " for character in text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0 or blank:
        raise ValueError(f"must look like {DEFAULT_URL}")
    if parts.username is not None:
        raise ValueError("must hold no user or password: give a token by SAM2_MCP_TOKEN_FILE")
    return text


def _token(text: str) -> str:
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("must be one word of printable ASCII characters")
    return token


def _token_file(text: str) -> str:
    try:
        return _token(Path(text).read_text(encoding="utf-8"))
    except OSError as error:
        raise SetupError(f"cannot read the token file {text}: {error.strerror}", EXIT_STARTUP) from error


def _profile(text: str) -> str:
    if text not in PROFILES:
        raise ValueError(f"{text!r} is none of {', '.join(PROFILES)}")
    return text


def _folders(given: str | list[str]) -> tuple[Path, ...]:
    """From a flag a list, from a variable one text with the system's separator of paths."""
    texts = given.split(os.pathsep) if isinstance(given, str) else given
    # Hosts start the bridge without a shell, which would have turned ~ into a path.
    folders = tuple(Path(os.path.abspath(os.path.expanduser(text))) for text in texts if text)  # noqa: PTH100, PTH111
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"{str(folder)!r} is no folder")
        if folder.parent == folder:
            raise ValueError("must not be a whole file system: name the folders that hold what may be sent")
    return folders


def _between(low: float, high: float, kind: Callable[[str], float], reason: str) -> Callable[[str], float]:
    def check(text: str) -> float:
        value = kind(text)
        if not low <= value <= high:
            raise ValueError(f"must be from {low:g} to {high:.0f}: {reason}")
        return value

    return check


_deadline_s = _between(MIN_DEADLINE_S, MAX_DEADLINE_S, float, "what takes longer is no call")
_parallel_calls = _between(1, HIGHEST_MAX_PARALLEL_CALLS, int, "each holds a thread and a connection")
_answer_bytes = _between(LOWEST_MAX_ANSWER_BYTES, HIGHEST_MAX_ANSWER_BYTES, int, "the station reads up to 16 MiB")


class _Setting(NamedTuple):
    flag: str
    variable: str
    check: Callable[[Any], Any]
    help: str


_SETTINGS = {
    "url": _Setting("--url", "SAM2_MCP_URL", _url, f"the worker's MCP endpoint ({DEFAULT_URL})"),
    "token": _Setting("--token", "SAM2_MCP_TOKEN", _token, "bearer token; the process list shows it, a file does not"),
    "token_file": _Setting("--token-file", "SAM2_MCP_TOKEN_FILE", _token_file, "file that holds the bearer token"),
    "profile": _Setting("--profile", "SAM2_MCP_PROFILE", _profile, f"how to treat the host: {', '.join(PROFILES)}"),
    "deadline_s": _Setting(
        "--deadline", "SAM2_MCP_DEADLINE_S", _deadline_s, "seconds from a request to its answer (27)"
    ),
    "max_answer_bytes": _Setting("--max-answer-bytes", "SAM2_MCP_MAX_ANSWER_BYTES", _answer_bytes, "longest answer"),
    "max_parallel_calls": _Setting(
        "--max-parallel-calls", "SAM2_MCP_MAX_PARALLEL_CALLS", _parallel_calls, "calls at once in profile full (16)"
    ),
    "share": _Setting(
        "--share", "SAM2_MCP_SHARE", _folders, "folder whose files may be sent to the worker; repeatable"
    ),
}


def load(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> Config:
    """The settings in force.

    Raises:
        SetupError: a value cannot be used; the text says which and what would do.
        SystemExit: after --help and --version, and on an unknown flag.
    """
    flags = _flags(argv) if argv else {}
    sources: dict[str, tuple[str, Any]] = {}
    for name, setting in _SETTINGS.items():
        if (text := flags.get(name)) is not None:
            sources[name] = setting.flag, text
        elif text := environ.get(setting.variable):  # set to nothing is not set
            sources[name] = setting.variable, text
    if "token" in sources and "token_file" in sources:
        file_is_stronger = flags.get("token") is None and flags.get("token_file") is not None
        del sources["token" if file_is_stronger else "token_file"]
    values = {name: _checked(source, _SETTINGS[name], text) for name, (source, text) in sources.items()}
    if "token_file" in values:
        values["token"] = values.pop("token_file")
    config = Config(**values)
    if config.profile != "full" and config.deadline_s > MAX_STATION_DEADLINE_S:
        limit = f"must be at most {MAX_STATION_DEADLINE_S:g} in profile {config.profile}: the station waits for 30 s"
        raise SetupError(f"{sources['deadline_s'][0]}: {limit}", EXIT_USAGE)
    return config


def _checked(source: str, setting: _Setting, text: Any) -> Any:
    try:
        return setting.check(text)
    except ValueError as error:
        raise SetupError(f"{source}: {error}", EXIT_USAGE) from error


def _flags(argv: Sequence[str]) -> dict[str, Any]:
    # Costs 10 ms, and the station starts the bridge without flags.
    import argparse

    parser = argparse.ArgumentParser("sam2-mcp", description="stdio <-> HTTP bridge for MCP hosts", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"sam2-mcp {__version__}")
    for name, setting in _SETTINGS.items():
        action = "append" if name == "share" else "store"
        help_text = f"{setting.help}; or {setting.variable}"
        parser.add_argument(setting.flag, dest=name, action=action, metavar="VALUE", help=help_text)
    return vars(parser.parse_args(argv))
