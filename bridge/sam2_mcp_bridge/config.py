"""Settings from the command line and the environment, checked once. A flag beats its variable.

Owns names, defaults and limits; what stands in credentials is checked by credentials.py, certificates are read by
tls.py when they are needed. No secret shows in a repr or in an error text.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from sam2_mcp_bridge import __version__, credentials
from sam2_mcp_bridge.errors import EXIT_USAGE, SetupError

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


# No slots: since Python 3.14 they make dataclasses load inspect after all, 1.2 MB in each bridge.
@dataclass(frozen=True)
class Config:
    url: str = DEFAULT_URL
    token: str | None = field(default=None, repr=False)
    deadline_s: float = DEFAULT_DEADLINE_S
    max_answer_bytes: int = DEFAULT_MAX_ANSWER_BYTES
    profile: str = "station"
    max_parallel_calls: int = DEFAULT_MAX_PARALLEL_CALLS
    token_file: str | None = None  # where `token` is from; read again when the server refuses it
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    proxy: str | None = field(default=None, repr=False)
    proxy_from_env: bool = False
    share: tuple[Path, ...] = ()


def _url(text: str) -> str:
    parts = urlsplit(text)
    blank = any(character <= " " for character in text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0 or blank:
        raise ValueError(f"must look like {DEFAULT_URL}")
    if parts.username is not None:
        raise ValueError("must hold no user or password: give a token by SAM2_MCP_TOKEN_FILE")
    return text


def check_proxy(text: str) -> str:
    """The address of a proxy as it was given.

    Raises:
        ValueError: it cannot be one; the text does not repeat it, for it may hold a password.
    """
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.path not in ("", "/") or any(character <= " " for character in text):
        raise ValueError("must look like http://proxy:3128 (http or https; SOCKS is not spoken)")
    return text


def _path(text: str) -> str:
    return os.path.expanduser(text)  # noqa: PTH111 - Path's raises RuntimeError for an unknown user


def _switch(text: str) -> bool:
    on, off = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
    if text.lower() not in on + off:
        raise ValueError("must be 1 or 0")
    return text.lower() in on


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
        real = os.path.realpath(folder)  # a link to everything is as much
        if os.path.dirname(real) == real:  # noqa: PTH120 - Path's resolve raises for a loop of links
            raise ValueError("must not be a whole file system: name the folders that hold what may be sent")
    return folders


def _between(low: float, high: float, kind: Callable[[str], float], reason: str) -> Callable[[str], float]:
    name = "whole number" if kind is int else "number"

    def check(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise ValueError(f"must be a {name} from {low:g} to {high:.0f}: {reason}")
        return value

    return check


_deadline_s = _between(MIN_DEADLINE_S, MAX_DEADLINE_S, float, "what takes longer is no call")
_parallel_calls = _between(1, HIGHEST_MAX_PARALLEL_CALLS, int, "each holds a thread and a connection")
_answer_bytes = _between(LOWEST_MAX_ANSWER_BYTES, HIGHEST_MAX_ANSWER_BYTES, int, "the station reads up to 16 MiB")


def _shown_as(metavar: str, **more: Any) -> Mapping[str, Any]:
    return MappingProxyType({"metavar": metavar, **more})


class Setting(NamedTuple):
    """A field of Config as flag and as variable; `check` makes its value of the text."""

    flag: str
    variable: str
    check: Callable[[Any], Any]
    help: str
    parser_options: Mapping[str, Any]


SETTINGS = {
    "url": Setting("--url", "SAM2_MCP_URL", _url, "the worker's MCP endpoint", _shown_as("URL")),
    "token": Setting(
        "--token",
        "SAM2_MCP_TOKEN",
        credentials.token,
        "bearer token; the process list shows it, a file does not",
        _shown_as("TOKEN"),
    ),
    "token_file": Setting(
        "--token-file",
        "SAM2_MCP_TOKEN_FILE",
        _path,
        "file with the bearer token; read again when the server says 401",
        _shown_as("FILE"),
    ),
    "headers": Setting(
        "--header-file",
        "SAM2_MCP_HEADER_FILE",
        credentials.header_file,
        "file with lines `Name: value` to send as well",
        _shown_as("FILE"),
    ),
    "ca_file": Setting(
        "--ca-file",
        "SAM2_MCP_CA_FILE",
        _path,
        "PEM file, or folder of them, with the only CAs to trust over https",
        _shown_as("PATH"),
    ),
    "client_cert": Setting(
        "--client-cert",
        "SAM2_MCP_CLIENT_CERT",
        _path,
        "PEM file with the certificate to show to the server",
        _shown_as("FILE"),
    ),
    "client_key": Setting(
        "--client-key",
        "SAM2_MCP_CLIENT_KEY",
        _path,
        "PEM file with its key, if that is not in the same file",
        _shown_as("FILE"),
    ),
    "proxy": Setting(
        "--proxy", "SAM2_MCP_PROXY", check_proxy, "HTTP proxy to go through; none by default", _shown_as("URL")
    ),
    "proxy_from_env": Setting(
        "--proxy-from-env",
        "SAM2_MCP_PROXY_FROM_ENV",
        _switch,
        "take the proxy from HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY (1); they are not looked at otherwise",
        MappingProxyType({"action": "store_const", "const": "1"}),
    ),
    "profile": Setting(
        "--profile", "SAM2_MCP_PROFILE", _profile, f"how to treat the host: {', '.join(PROFILES)}", _shown_as("NAME")
    ),
    "deadline_s": Setting(
        "--deadline",
        "SAM2_MCP_DEADLINE_S",
        _deadline_s,
        "seconds from a request to its answer; up to 29, in profile full up to 3600",
        _shown_as("SECONDS"),
    ),
    "max_answer_bytes": Setting(
        "--max-answer-bytes", "SAM2_MCP_MAX_ANSWER_BYTES", _answer_bytes, "longest answer, in bytes", _shown_as("BYTES")
    ),
    "max_parallel_calls": Setting(
        "--max-parallel-calls",
        "SAM2_MCP_MAX_PARALLEL_CALLS",
        _parallel_calls,
        "calls at once in profile full",
        _shown_as("NUMBER"),
    ),
    "share": Setting(
        "--share",
        "SAM2_MCP_SHARE",
        _folders,
        "folder whose files are sent to the worker when an argument of a tool names them; repeatable",
        _shown_as("FOLDER", action="append"),
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
    for name, setting in SETTINGS.items():
        if (text := flags.get(name)) is not None:
            sources[name] = setting.flag, text
        elif text := environ.get(setting.variable):  # set to nothing is not set
            sources[name] = setting.variable, text
    if "token" in sources and "token_file" in sources:
        file_is_stronger = flags.get("token") is None and flags.get("token_file") is not None
        del sources["token" if file_is_stronger else "token_file"]
    values = {name: _checked(source, SETTINGS[name], text) for name, (source, text) in sources.items()}
    if "token_file" in values:
        read = SETTINGS["token_file"]._replace(check=credentials.token_file)
        values["token"] = _checked(sources["token_file"][0], read, values["token_file"])
    config = Config(**values)
    _check_together(config, {name: source for name, (source, _) in sources.items()})
    return config


def default_text(name: str) -> str:
    """The default of a setting as it would be written; "" where there is none."""
    value = getattr(Config(), name)
    return (
        ""
        if value is None or value == () or value is False
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def _check_together(config: Config, sources: Mapping[str, str]) -> None:
    """What only shows when all values are known; `sources` names the flag or variable of each."""
    if config.profile != "full" and config.deadline_s > MAX_STATION_DEADLINE_S:
        rule = f"must be at most {MAX_STATION_DEADLINE_S:g} in profile {config.profile}: the station waits for 30 s"
        raise SetupError(f"{sources['deadline_s']}: {rule}", EXIT_USAGE)
    if config.client_key and not config.client_cert:
        raise SetupError(f"{sources['client_key']}: a key needs its certificate, SAM2_MCP_CLIENT_CERT", EXIT_USAGE)
    if config.token and any(name.lower() == "authorization" for name, _ in config.headers):
        rule = "holds an Authorization header, and there is a token too; give one of them"
        raise SetupError(f"{sources['headers']}: {rule}", EXIT_USAGE)


def _checked(source: str, setting: Setting, text: Any) -> Any:
    try:
        return setting.check(text)
    except SetupError as error:
        raise SetupError(f"{source}: {error}", error.exit_code) from error
    except ValueError as error:
        raise SetupError(f"{source}: {error}", EXIT_USAGE) from error


def _flags(argv: Sequence[str]) -> dict[str, Any]:
    # Costs 10 ms, and the station starts the bridge without flags.
    import argparse

    parser = argparse.ArgumentParser(
        "sam2-mcp",
        description="stdio <-> HTTP bridge for MCP hosts",
        epilog="sam2-mcp --check [URL] [--json] tries the connection stage by stage and says what to mend.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sam2-mcp {__version__}")
    for name, setting in SETTINGS.items():
        default = default_text(name)
        help_text = f"{setting.help}; or {setting.variable}" + (f" (default {default})" if default else "")
        parser.add_argument(setting.flag, dest=name, help=help_text, **setting.parser_options)
    flags, unknown = parser.parse_known_args(argv)
    if unknown:
        # Without values, unlike argparse: those of --header "Authorization: ..." would be in the log of the host.
        names = [word.partition("=")[0] if word.startswith("--") else word[:2] for word in unknown if word[0:1] == "-"]
        unplaced = "a value without a flag; the server's address goes behind --url"
        parser.error(f"no such flag: {', '.join(names)}" if names else unplaced)
    return vars(flags)
