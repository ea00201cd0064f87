"""What the bridge in front of this call said of its host, carried like the call's deadline.

Header `Sam2-Mcp-Profile: station; max-answer-bytes=8388608`. Hosts that speak to the worker directly send none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

PROFILE_HEADER = "sam2-mcp-profile"
STATION = "station"
_CAP = "max-answer-bytes"


@dataclass(frozen=True, slots=True)
class HostProfile:
    """`name` is the bridge's profile, "" without a bridge; a line above `max_answer_bytes` would not reach the host."""

    name: str = ""
    max_answer_bytes: int | None = None

    @property
    def is_station(self) -> bool:
        """Whether pictures are only sent on request."""
        return self.name == STATION


def read_profile(header: str | None) -> HostProfile:
    """The profile in the header's value; what cannot be read is as good as absent."""
    name, _, rest = (header or "").partition(";")
    key, _, value = rest.strip().partition("=")
    digits = value.strip()
    cap = int(digits) if key.strip() == _CAP and digits.isascii() and digits.isdigit() and len(digits) < 12 else None
    return HostProfile(name.strip().lower(), cap)


_current: ContextVar[HostProfile] = ContextVar("sam2_mcp_host_profile", default=HostProfile())  # noqa: B039 (frozen)


def current_profile() -> HostProfile:
    """That of the call that is running."""
    return _current.get()


@contextmanager
def profile_scope(profile: HostProfile) -> Iterator[None]:
    """Make `profile` the current one for the block."""
    reset = _current.set(profile)
    try:
        yield
    finally:
        _current.reset(reset)
