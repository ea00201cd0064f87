"""What a ledger asks app.py to do, and what comes back from upstream: plain values, shared by all profiles."""

from __future__ import annotations

from typing import Any, NamedTuple

from sam2_mcp_bridge.errors import Failure


class Result(NamedTuple):
    """The result of an upstream response."""

    value: dict[str, Any]


class Refusal(NamedTuple):
    """The error object of an upstream response: an integer `code`, a string `message`, whatever else came."""

    error: dict[str, Any]


Answer = Result | Refusal | Failure


class Connect(NamedTuple):
    """Make contact upstream, so that the first call need not."""


class Send(NamedTuple):
    """Send this request upstream and report with `answered(call, ...)`."""

    call: int
    method: str
    params: Any
    deadline_s: float


class Abort(NamedTuple):
    """Close the stream of this call, if it still runs; nobody waits for its answer."""

    call: int


class Write(NamedTuple):
    """Write this line."""

    line: str


class Exit(NamedTuple):
    """The host is gone."""


Action = Connect | Send | Abort | Write | Exit
