"""The state of every request of the host, as a state machine. Sans-IO: no sockets, no threads, no clock.

Two rules. Everything that decides what is written, sent or given up is in this file. This file does nothing itself:
each event returns the actions that app.py carries out, in order.

    events    received, answered, clock_moved, closed
    actions   Connect, Send, Abort, Write, Exit

Profile `station`: the host takes the next line as the answer to its oldest request and never looks at the id
(reference: station.md 1.3). So lines leave in the order in which requests came, one for each; a request goes upstream
when all before it are answered; nothing is ever written that no request waits for.

A request that the host cancels gets no line, as MCP demands, and the requests behind it move up. The station itself
never cancels; a host that does has by that stopped waiting for the line, so nothing shifts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from sam2_mcp_bridge import __version__
from sam2_mcp_bridge.actions import (
    HANDSHAKE_VERSIONS,
    MAX_LIST_PAGES,
    Abort,
    Action,
    Answer,
    Connect,
    Exit,
    Refusal,
    Result,
    Send,
    Write,
    as_object,
)
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.host import outcomes
from sam2_mcp_bridge.host.framing import Malformed, Message, Notification, Request

# The station hands a line to whoever asks its queue next, and a request that comes in the same turn of its event loop
# in which a line arrives may ask before the waiter that was woken (asyncio.Queue; seen once in some hundred calls, 12
# in parallel). Callers ask again right after an answer, and ask together; so between requests that overlap a line
# keeps this distance from the line before it and from the newest request.
SETTLE_S = 0.04
# Of requests made together the first may be answered before the second has come: with an upstream that answers in 1 ms
# 11 of 2,124 calls were swapped, 7 of 4,795 when no answer was younger than 5 ms, none of about as many with 10 ms,
# on two loaded cores. A tool that does anything takes longer than this.
TOGETHER_S = 0.01
# A host that never pauses must not hold an answer back for longer. Requests that overlap are given up that much
# before their deadline, at most a tenth of it, so that lines which are due together can keep their distance.
MAX_HOLD_S = 0.5
HOLD_SHARE = 0.1

INSTRUCTIONS = (
    "Tools of a sam2-mcp worker, reached through a bridge. Every call is answered within {limit_s:g} s. A long job "
    "answers with what is done and a cursor: call again with the cursor. Calls of one session run one after another."
)


@dataclass(eq=False)
class _Entry:
    id: str | int | None
    method: str  # "" where the message had none
    params: Any
    deadline_s: float
    alone_s: float  # until then a request made together with this one may still come
    line: str | None = None
    call: int | None = None  # its number, while it is upstream
    pages: list[list[Any]] = field(default_factory=list)
    overlaps: bool = False  # another request waited, or came, while this one waited
    ready_s: float | None = None  # since when it could have been written

    @property
    def subject(self) -> str:
        return outcomes.subject(self.method, self.params)


class Ledger:
    """Which request is next, what may be written, what is late.

    Args:
        limit_s: from the arrival of a request's line to its answer, queueing included.
        max_line_bytes: above it an answer is replaced by an error that says so.
        settle_s: distance in time of a line from the line before it, where requests overlap.
        hint: goes behind the instructions.
    """

    def __init__(self, limit_s: float, max_line_bytes: int, settle_s: float = SETTLE_S, hint: str = "") -> None:
        self._limit_s = limit_s
        self._hint = hint
        self._max_line_bytes = max_line_bytes
        self._settle_s = settle_s
        self._together_s = min(TOGETHER_S, settle_s)
        self._hold_s = min(MAX_HOLD_S, HOLD_SHARE * limit_s) if settle_s else 0.0
        self._entries: deque[_Entry] = deque()  # in order of arrival
        self._calls = 0
        self._newest_s = 0.0  # when the last line came or went

    def __repr__(self) -> str:
        unanswered = sum(entry.line is None for entry in self._entries)
        return f"<Ledger [Requests: {len(self._entries)} held, {unanswered} unanswered]>"

    @property
    def next_deadline_s(self) -> float | None:
        """When `clock_moved` must be called at the latest."""
        times_s = [self._due_s(pending)] if (pending := self._pending()) else []
        if self._entries and self._entries[0].line is not None:
            times_s.append(self._writable_s(self._entries[0]))
        return min(times_s, default=None)

    def received(self, message: Message, now_s: float) -> list[Action]:
        """A message of the host, whose line came at `now_s`."""
        actions = self._expire(now_s)
        deadline_s = now_s + self._limit_s
        match message:
            case Request(id_value, method, params):
                # A host initializes before it does anything else; pings are not the station's.
                alone_s = now_s if method in ("initialize", "ping") else now_s + self._together_s
                entry = self._append(_Entry(id_value, method, params, deadline_s, alone_s), now_s)
                actions += self._answer_locally(entry)
            case Malformed(id_value, code, reason):
                entry = self._append(_Entry(id_value, "", None, deadline_s, now_s), now_s)
                self._set_line(entry, error={"code": code, "message": f"Invalid message: {reason}"})
            case Notification("notifications/cancelled", params):
                actions += self._cancel(params)
        return actions + self._advance(now_s)

    def answered(self, call: int, answer: Answer, now_s: float) -> list[Action]:
        """What a call upstream brought. A late or unknown call changes nothing."""
        if (pending := self._pending()) and pending.call == call and now_s < self._due_s(pending):
            pending.call = None
            self._record(pending, answer)
        return self._expire(now_s) + self._advance(now_s)

    def written(self, now_s: float) -> None:
        """A line has left; the next one keeps its distance from now, however long the pipe was full."""
        self._newest_s = max(self._newest_s, now_s)

    def clock_moved(self, now_s: float) -> list[Action]:
        return self._expire(now_s) + self._advance(now_s)

    def closed(self) -> list[Action]:
        """The host closed its end: nothing is written any more."""
        actions = [action for entry in self._entries for action in _abort(entry)]
        self._entries.clear()
        return [*actions, Exit()]

    def _append(self, entry: _Entry, now_s: float) -> _Entry:
        if self._entries:
            entry.overlaps = self._entries[-1].overlaps = True
        self._entries.append(entry)
        self._newest_s = max(self._newest_s, now_s)  # the reader's clock may be behind that of the last write
        return entry

    def _due_s(self, entry: _Entry) -> float:
        """When a request without an answer is given up."""
        return entry.deadline_s - (self._hold_s if entry.overlaps else 0.0)

    def _pending(self) -> _Entry | None:
        """The first request without an answer: the one that is upstream, or goes there next."""
        return next((entry for entry in self._entries if entry.line is None), None)

    def _writable_s(self, entry: _Entry) -> float:
        """From when on the line of an answered entry at the head may be written."""
        assert entry.ready_s is not None
        settled_s = self._newest_s + self._settle_s if entry.overlaps else entry.alone_s
        return min(settled_s, entry.ready_s + MAX_HOLD_S, entry.deadline_s)

    def _answer_locally(self, entry: _Entry) -> list[Action]:
        if entry.method == "ping":
            self._set_line(entry, result={})
        if entry.method != "initialize":
            return []
        self._set_line(entry, result=self._initialize_result(entry.params))
        return [Connect()]

    def _initialize_result(self, params: Any) -> dict[str, Any]:
        """Always success: after an error the station makes every later call wait for 60 s (station.md 1.7 i)."""
        wanted = as_object(params).get("protocolVersion")
        result: dict[str, Any] = {
            "protocolVersion": wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "sam2-mcp", "version": __version__},
            "instructions": INSTRUCTIONS.format(limit_s=self._limit_s),
        }
        return outcomes.with_hint(result, self._hint)

    def _cancel(self, params: Any) -> list[Action]:
        target = as_object(params).get("requestId")
        for entry in self._entries:
            # MCP forbids to cancel initialize; a malformed message is no request.
            if type(entry.id) is type(target) and entry.id == target and entry.method not in ("initialize", ""):
                self._entries.remove(entry)
                return _abort(entry)
        return []

    def _expire(self, now_s: float) -> list[Action]:
        actions: list[Action] = []
        for entry in self._entries:  # in order of their deadlines
            if self._due_s(entry) > now_s:
                break
            if entry.line is None:
                code = "not_started" if entry.call is None else "deadline"
                actions += _abort(entry)
                entry.call = None
                self._record(entry, Failure(code, subject=entry.subject, limit_s=self._limit_s))
        return actions

    def _record(self, entry: _Entry, answer: Answer) -> None:
        """Turn an answer into the request's line, or ask for the next page of a list."""
        match answer:
            case Result(value) if entry.method == "tools/list":
                self._record_page(entry, value)
            case Result(value):
                self._set_line(entry, result=value)
            case Refusal(error) if entry.method == "tools/call":
                detail = f"{error['message']} (JSON-RPC error {error['code']})"
                self._record(entry, Failure("refused", subject=entry.subject, detail=detail))
            case Refusal(error):
                self._set_line(entry, error=error)
            case _:
                self._set_line(entry, **outcomes.of_failure(entry.method, answer))

    def _record_page(self, entry: _Entry, page: dict[str, Any]) -> None:
        """Follow nextCursor: the station asks once, with empty params, and never for a second page."""
        cursor, tools = page.get("nextCursor"), page.get("tools")
        entry.pages.append(tools if isinstance(tools, list) else [])
        if cursor and isinstance(cursor, str) and len(entry.pages) < MAX_LIST_PAGES:
            entry.params = (entry.params if isinstance(entry.params, dict) else {}) | {"cursor": cursor}
        else:
            self._set_line(entry, result=page | {"tools": [tool for tools in entry.pages for tool in tools]})

    def _set_line(self, entry: _Entry, **outcome: Any) -> None:
        try:
            entry.line = outcomes.line({"jsonrpc": "2.0", "id": entry.id, **outcome}, self._max_line_bytes)
        except Failure as failure:
            self._record(entry, failure)

    def _advance(self, now_s: float) -> list[Action]:
        """Write what is answered at the head and has settled; send the first request that has no answer yet."""
        actions: list[Action] = []
        while self._entries and self._entries[0].line is not None:
            head = self._entries[0]
            head.ready_s = now_s if head.ready_s is None else head.ready_s
            if self._writable_s(head) > now_s:
                break
            self._entries.popleft()
            self.written(now_s)
            actions.append(Write(str(head.line)))
        # What is about to be given up is not even started: the worker would begin it and be cut off.
        if (pending := self._pending()) and pending.call is None and self._due_s(pending) - now_s > self._hold_s:
            actions.append(self._send(pending))
        return actions

    def _send(self, entry: _Entry) -> Send:
        self._calls += 1
        entry.call = self._calls
        params = _unwrapped(entry.params) if entry.method == "tools/call" else entry.params
        return Send(entry.call, entry.method, params, self._due_s(entry))


def _abort(entry: _Entry) -> list[Action]:
    return [] if entry.call is None else [Abort(entry.call)]


def _unwrapped(params: Any) -> Any:
    """The params of a tools/call with a lone `kwargs` object in place of its wrapper.

    The station's public loader drops a tool's schema, so the model sees one parameter named kwargs and nests every
    argument in it (station.md 1.6).
    """
    arguments = as_object(params).get("arguments")
    if isinstance(arguments, dict) and list(arguments) == ["kwargs"] and isinstance(arguments["kwargs"], dict):
        return params | {"arguments": arguments["kwargs"]}
    return params
