"""Drives the ledger with made-up times, as app.py does with real ones: it calls `clock_moved` at each deadline."""

import json
from dataclasses import dataclass, field
from typing import Any

from sam2_mcp_bridge.actions import Abort, Action, Refusal, Result, Send, Write
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.host.framing import Message, Request
from sam2_mcp_bridge.host.ledger import Ledger

LIMIT_S = 27.0
MAX_LINE_BYTES = 64 * 1024


@dataclass
class Drive:
    now_s: float = 100.0
    ledger: Ledger = field(default_factory=lambda: Ledger(LIMIT_S, MAX_LINE_BYTES))
    sends: list[Send] = field(default_factory=list)
    lines: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    in_flight: int | None = None
    aborted: list[int] = field(default_factory=list)
    others: list[Action] = field(default_factory=list)

    def take(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Send():
                    assert self.in_flight is None, "one request upstream at a time"
                    self.in_flight = action.call
                    self.sends.append(action)
                case Abort(call):
                    assert call == self.sends[-1].call
                    self.in_flight = None
                    self.aborted.append(call)
                case Write(line):
                    self.lines.append((self.now_s, json.loads(line)))
                case _:
                    self.others.append(action)

    def wait(self, seconds: float) -> None:
        until_s = self.now_s + seconds
        while (deadline_s := self.ledger.next_deadline_s) is not None and deadline_s <= until_s:
            self.now_s = deadline_s
            self.take(self.ledger.clock_moved(deadline_s))
        self.now_s = until_s

    def receive(self, message: Message) -> None:
        self.take(self.ledger.received(message, self.now_s))

    def call(self, id_value: int | str = 1, method: str = "tools/call", params: Any = None) -> None:
        self.receive(Request(id_value, method, params))

    def answer(self, answer: Result | Refusal | Failure) -> None:
        assert self.in_flight is not None
        call, self.in_flight = self.in_flight, None
        self.take(self.ledger.answered(call, answer, self.now_s))

    @property
    def answers(self) -> list[dict[str, Any]]:
        return [answer for _, answer in self.lines]


def unsettled() -> Drive:
    """For tests of what is written rather than of when."""
    return Drive(ledger=Ledger(LIMIT_S, MAX_LINE_BYTES, settle_s=0))
