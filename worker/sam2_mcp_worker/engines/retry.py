"""When a failed request is tried again, and after how long. Pure; the clock's reading is passed in."""

from __future__ import annotations

import email.utils
import math
from collections.abc import Mapping
from typing import Literal

# The first wait without a word from the server, doubled each time up to the last; the SDK's own figures.
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 8.0
# `retry-after: 0` must not become a busy loop.
SHORTEST_WAIT_S = 0.1
How = Literal["busy", "broken", "unsent"]
"""The provider could not take the request; it began to work on it (which is paid for); it was never reached."""
# Each try sends megabytes. With the waits above six of them take 15 s. What was paid for is begun anew less often, and
# a port where nobody listens rarely opens while one waits.
MAX_TRIES: dict[How, int] = {"busy": 6, "broken": 3, "unsent": 2}
# With less time left than this no answer can be expected; the quickest ones take about a second.
SHORTEST_TRY_S = 0.5

# Nobody here waits for a day: whatever a server asks for beyond that says no more, and takes a line to print.
LONGEST_ASKED_S = 86_400.0

RETRY_STATUSES = frozenset({408, 409, 429, 529})


def may_retry(status: int, headers: Mapping[str, str]) -> bool:
    """Whether the same request may succeed later; the server's own word (`x-should-retry`) counts more."""
    told = headers.get("x-should-retry")
    if told in ("true", "false"):
        return told == "true"
    return status in RETRY_STATUSES or status >= 500


def retry_after_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """What `retry-after-ms` or `retry-after` (seconds or an HTTP date) asks for, None when they say nothing.

    A date is compared with the server's own `date` where it is sent, since clocks differ; `now_s` is the time of day
    in seconds since 1970.
    """
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return min(milliseconds / 1000, LONGEST_ASKED_S)
    told = headers.get("retry-after")
    seconds = _seconds(told)
    if seconds is not None:
        return min(seconds, LONGEST_ASKED_S)
    then_s = _date_s(told)
    if then_s is None:
        return None
    return min(max(0.0, then_s - (_date_s(headers.get("date")) or now_s)), LONGEST_ASKED_S)


def _seconds(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _date_s(text: str | None) -> float | None:
    parts = email.utils.parsedate_tz(text) if text else None
    try:
        return float(email.utils.mktime_tz(parts)) if parts else None
    except (ValueError, OverflowError):
        return None


def wait_s(tries: int, asked_s: float | None, spread: float) -> float:
    """Seconds before the next try after `tries` of them: what the server asked for, else doubling waits.

    `spread` (0-1) shortens an unasked wait by up to a quarter, so that many requests do not come back at once.
    """
    if asked_s is not None:
        return max(asked_s, SHORTEST_WAIT_S)
    return min(FIRST_WAIT_S * 2.0 ** (tries - 1), LONGEST_WAIT_S) * (1 - 0.25 * spread)
