"""The one subscription upstream that serves everybody whose own could not be passed on. No I/O, no clock.

A legacy host has no subscriptions of its own, and a legacy server has one stream for all: here the union of what is
wanted becomes one `Listen`, opened anew when it changes or ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sam2_mcp_bridge.actions import Abort, Action, Answer, Listen, Refusal, Server

# After a stream ended; doubles while nothing comes, because a server that is down must not cost CPU.
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0


class Listening:
    """What is listened to, and when that is tried again."""

    def __init__(self) -> None:
        self.call: int | None = None
        self._open_for: tuple[str, dict[str, Any]] | None = None  # revision of the server, and filter
        self._pause_s = FIRST_PAUSE_S
        self.retry_at_s: float | None = None

    def tend(
        self, server: Server | None, wanted: dict[str, Any] | None, number: Callable[[], int], now_s: float
    ) -> list[Action]:
        """Listen to what is wanted of this server now; None is nothing at all. `number` gives the call of a stream."""
        open_for = None if server is None or wanted is None else (server.version, wanted)
        due = self.retry_at_s is not None and self.retry_at_s <= now_s
        if open_for == self._open_for and not due:
            return []
        actions = self.stop()
        self._open_for = open_for
        if wanted is not None and open_for is not None:
            self.call = call = number()
            actions.append(Listen(call, {"notifications": wanted}))
        return actions

    def stop(self) -> list[Action]:
        """Close the stream, so that the next `tend` opens another one."""
        call, self.call, self._open_for, self.retry_at_s = self.call, None, None, None
        return [] if call is None else [Abort(call)]

    def met(self) -> None:
        """The server is a new one: what the former one refused may be tried at once."""
        if self.call is None:
            self._open_for = self.retry_at_s = None

    def streamed(self) -> None:
        """Something came: the server is there."""
        self._pause_s = FIRST_PAUSE_S

    def ended(self, answer: Answer, now_s: float) -> None:
        """The stream is over. A server that refuses it is not asked again for the same."""
        self.call = None
        if not isinstance(answer, Refusal):
            self.retry_at_s = now_s + self._pause_s
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
