"""What a provider costs a day, on disk, with a hard cap: a request is only sent when its worst case still fits.

The worst case is reserved before a request and settled by what it really cost. What a killed worker had reserved
counts as spent, since nobody knows what came of it. Days are UTC. Several workers may share the file.

Calls block for well under a millisecond: the journal is written without waiting for the disk.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from sam2_mcp_worker.spending import Usage

# Money is counted in whole billionths of a dollar: sums of floats drift, and a token of $0.10 a million is 100 of them.
NANO = 10**9
# Another worker holds the file for microseconds; longer means that something is wrong with it. Everybody waits for it.
BUSY_TIMEOUT_S = 0.2
# A file that was held that long is not tried again at once, so that 16 requests do not wait one after the other.
BUSY_PAUSE_S = 1.0
# A record that somebody has filled with other things than numbers is as unusable as a damaged file.
FAULTS = (sqlite3.Error, OSError, TypeError, ValueError, OverflowError)

TABLE = """
CREATE TABLE IF NOT EXISTS spent (
    day TEXT PRIMARY KEY,
    requests INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    nano_usd INTEGER NOT NULL DEFAULT 0,
    reserved_nano_usd INTEGER NOT NULL DEFAULT 0
)"""

NOTHING = Usage()

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Day:
    """What a day has cost, and what is reserved for requests under way."""

    day: str
    spent: Usage = NOTHING
    reserved_usd: float = 0.0

    def told(self, cap_usd: float) -> dict[str, Any]:
        """For get_status."""
        return {
            "day_utc": self.day,
            "requests": self.spent.requests,
            "input_tokens": self.spent.input_tokens,
            "output_tokens": self.spent.output_tokens,
            "usd": round(self.spent.usd, 6),
            "reserved_usd": round(self.reserved_usd, 6),
            "cap_usd": cap_usd,
        }


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money set aside for one request."""

    day: str
    nano_usd: int


Refusal = Literal["cap", "reserved", "unwritable"]
"""Passed for the day; would fit once requests under way are settled; the file cannot be written."""


class CostLedger:
    """The record below `path`, with a cap in US dollars a day."""

    def __init__(self, path: Path, cap_usd: float, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._cap_nano_usd = round(cap_usd * NANO)
        self._clock = clock
        self._connection: sqlite3.Connection | None = None
        self._last = Day(self._today())
        self._unsettled: list[tuple[Reservation, Usage]] = []
        self._busy_until_s = 0.0

    def _today(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%d")

    @property
    def today(self) -> Day:
        """What today has cost, as of the last request or `refresh`; reads no disk."""
        today = self._today()
        return self._last if self._last.day == today else Day(today)

    def fits(self, usd: float) -> bool:
        """Whether a request of this worst case would still fit if nothing else were under way."""
        return round((self.today.spent.usd + usd) * NANO) <= self._cap_nano_usd

    def refresh(self) -> str:
        """Look what is on disk; says what is wrong with the file, empty when nothing is."""
        try:
            with self._transaction() as connection:
                self._load(connection, self._today())
        except FAULTS as error:
            return self._complain(error)
        return ""

    def reserve(self, usd: float) -> Reservation | Refusal:
        """Set the worst case of a request aside, or say why not."""
        reservation = Reservation(self._today(), round(usd * NANO))
        try:
            with self._transaction() as connection:
                before = self._load(connection, reservation.day)
                spent, reserved = round(before.spent.usd * NANO), round(before.reserved_usd * NANO)
                if spent + reservation.nano_usd > self._cap_nano_usd:
                    return "cap"
                if spent + reserved + reservation.nano_usd > self._cap_nano_usd:
                    return "reserved"
                self._add(connection, reservation.day, Usage(), reservation.nano_usd)
        except FAULTS as error:
            self._complain(error)
            return "unwritable"
        return reservation

    def settle(self, reservation: Reservation, usage: Usage) -> None:
        """Replace the reservation by what the request cost.

        While the record cannot be written it stays reserved; the next call that can write makes up for it.
        """
        self._unsettled.append((reservation, usage))
        try:
            with self._transaction():
                pass
        except FAULTS as error:
            self._complain(error)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A block that is written as a whole or not at all; other workers wait at its beginning."""
        if time.monotonic() < self._busy_until_s:
            raise sqlite3.OperationalError("held by another worker")
        if self._connection is None:
            self._connection = self._open()
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        due = tuple(self._unsettled)
        try:
            for reservation, usage in due:
                self._add(connection, reservation.day, usage, -reservation.nano_usd)
            yield connection
        except BaseException:
            with suppress(sqlite3.Error):  # a failed write may have been undone already
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        del self._unsettled[: len(due)]

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = sqlite3.connect(self._path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            # A crash of the machine may lose the last seconds, a crash of the worker nothing.
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(TABLE)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _load(self, connection: sqlite3.Connection, day: str) -> Day:
        row = connection.execute(
            "SELECT requests, input_tokens, output_tokens, nano_usd, reserved_nano_usd FROM spent WHERE day = ?", (day,)
        ).fetchone()
        requests, input_tokens, output_tokens, nano_usd, reserved = row or (0, 0, 0, 0, 0)
        self._last = Day(day, Usage(requests, input_tokens, output_tokens, nano_usd / NANO), reserved / NANO)
        return self._last

    def _add(self, connection: sqlite3.Connection, day: str, usage: Usage, reserved: int) -> None:
        connection.execute("INSERT OR IGNORE INTO spent (day) VALUES (?)", (day,))
        connection.execute(
            "UPDATE spent SET requests = requests + ?, input_tokens = input_tokens + ?, "
            "output_tokens = output_tokens + ?, nano_usd = nano_usd + ?, "
            "reserved_nano_usd = max(0, reserved_nano_usd + ?) WHERE day = ?",
            (
                usage.requests,
                usage.input_tokens,
                usage.output_tokens,
                round(usage.usd * NANO),
                reserved,
                day,
            ),
        )
        self._load(connection, self._today())

    def _complain(self, error: Exception) -> str:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            self._busy_until_s = time.monotonic() + BUSY_PAUSE_S
        self.close()  # the next call opens it anew: the folder may be back, or the damaged file removed
        logger.warning("the record of costs cannot be used: %s: %s", self._path.stem, type(error).__name__)
        return f"the record of costs {self._path.stem} cannot be used ({type(error).__name__})"
