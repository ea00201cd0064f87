"""Drives the relay with made-up times, as app.py does with real ones, and keeps what a host and a server would see."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from sam2_mcp_bridge.actions import (
    MODERN_VERSION,
    Abort,
    Action,
    Answer,
    Connect,
    Exit,
    Extend,
    Listen,
    Reply,
    Result,
    Send,
    Server,
    Write,
)
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.full.relay import Relay
from sam2_mcp_bridge.host.framing import Message, Notification, Request, Response

LIMIT_S = 27.0
MAX_LINE_BYTES = 64 * 1024
MAX_PARALLEL = 4

ASKABLE = {"sampling": {}, "elicitation": {}, "roots": {"listChanged": True}}
LISTS = {kind: {"listChanged": True} for kind in ("tools", "prompts", "resources")}
CAPABILITIES = LISTS | {"resources": {"listChanged": True, "subscribe": True}, "logging": {}}
INFO = {"name": "far", "version": "3"}

PREFIX = "io.modelcontextprotocol/"


def legacy_server(capabilities: dict[str, Any] = CAPABILITIES, version: str = "2025-11-25") -> Server:
    raw = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": INFO, "instructions": "Do."}
    return Server(version, capabilities, INFO, "Do.", raw)


def modern_server(capabilities: dict[str, Any] = CAPABILITIES, **fields: Any) -> Server:
    raw = {"supportedVersions": [MODERN_VERSION], "capabilities": capabilities}
    return Server(MODERN_VERSION, capabilities, INFO, "Do.", raw)._replace(**fields)


DOWN = Failure("unreachable", where="there", detail="refused")
SERVERS = pytest.mark.parametrize("server", [legacy_server(), modern_server()], ids=["legacy", "modern"])


def envelope(capabilities: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    """The `_meta` of a modern host's request."""
    own = {"protocolVersion": MODERN_VERSION, "clientCapabilities": ASKABLE if capabilities is None else capabilities}
    return {PREFIX + key: value for key, value in own.items()} | meta


def notification(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method} | ({"params": params} if params else {})


def server_request(id_value: Any, method: str, **params: Any) -> dict[str, Any]:
    return notification(method, **params) | {"id": id_value}


@dataclass
class Drive:
    now_s: float = 100.0
    relay: Relay = field(default_factory=lambda: Relay(LIMIT_S, MAX_LINE_BYTES, MAX_PARALLEL))
    open: dict[int, Send | Listen] = field(default_factory=dict)  # upstream
    deadlines_s: dict[int, float] = field(default_factory=dict)
    sends: list[Send | Listen] = field(default_factory=list)
    aborted: list[int] = field(default_factory=list)
    connects: list[Connect] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)
    lines: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    exited: bool = False

    def take(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case Write(line):
                    assert line.isascii() and len(line) <= MAX_LINE_BYTES
                    self.lines.append((self.now_s, json.loads(line)))
                case Send() | Listen():
                    assert all(action.call != one.call for one in self.sends), "call numbers are never used twice"
                    self.sends.append(action)
                    self.open[action.call] = action
                    if isinstance(action, Send):
                        self.deadlines_s[action.call] = action.deadline_s
                case Extend(call, deadline_s):
                    assert call in self.open
                    self.deadlines_s[call] = deadline_s
                case Abort(call):
                    del self.open[call]
                    self.aborted.append(call)
                case Connect():
                    self.connects.append(action)
                case Reply(message):
                    self.replies.append(message)
                case Exit():
                    self.exited = True

    def wait(self, seconds: float) -> None:
        until_s, rounds = self.now_s + seconds, 0
        while (deadline_s := self.relay.next_deadline_s) is not None and deadline_s <= until_s:
            rounds += 1
            assert rounds < 1000, "a deadline that does not pass would be a busy loop"
            self.now_s = max(self.now_s, deadline_s)
            self.take(self.relay.clock_moved(self.now_s))
        self.now_s = until_s

    # The host

    def receive(self, message: Message) -> None:
        self.take(self.relay.received(message, self.now_s))

    def request(self, id_value: int | str, method: str = "tools/call", params: Any = None) -> None:
        self.receive(Request(id_value, method, params))

    def modern(self, id_value: int | str, method: str = "tools/call", _meta: Any = None, **params: Any) -> None:
        self.request(id_value, method, params | {"_meta": _meta or envelope()})

    def notify(self, method: str, **params: Any) -> None:
        self.receive(Notification(method, params or None))

    def respond(self, id_value: int, **outcome: Any) -> None:
        self.receive(Response(id_value, outcome))

    def handshake(self, server: Server | Failure, capabilities: dict[str, Any] = ASKABLE) -> None:
        """A legacy host's start; what it was told is not kept."""
        client = {"name": "host", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client}
        self.request("init", "initialize", params)
        self.connected(server)
        self.notify("notifications/initialized")
        if not isinstance(server, Failure):
            self.lines.clear()

    # The server

    def connected(self, told: Server | Failure) -> None:
        self.take(self.relay.connected(told, self.now_s))

    def answer(self, answer: Answer, call: int | None = None) -> None:
        """The answer to this call, or to the newest that is open."""
        call = max(self.open) if call is None else call
        self.open.pop(call, None)
        self.take(self.relay.answered(call, answer, self.now_s))

    def stream(self, message: dict[str, Any], call: int | None = None) -> None:
        self.take(self.relay.streamed(max(self.open) if call is None else call, message, self.now_s))

    # What was seen

    @property
    def messages(self) -> list[dict[str, Any]]:
        """All lines; none is left for the next look."""
        messages = [message for _, message in self.lines]
        self.lines.clear()
        return messages

    @property
    def message(self) -> dict[str, Any]:
        """The only new line."""
        (message,) = self.messages
        return message

    @property
    def newest(self) -> Send | Listen:
        return self.sends[-1]


def ready(server: Server, capabilities: dict[str, Any] = ASKABLE) -> Drive:
    drive = Drive()
    drive.handshake(server, capabilities)
    return drive


def text_of(answer: dict[str, Any]) -> str:
    assert answer["result"]["isError"] is True
    return str(answer["result"]["content"][0]["text"])


def contact(server: Server, capabilities: dict[str, Any] | None = None) -> Drive:
    """A host whose first request is done, and declared these capabilities: none unless others are given."""
    drive = Drive()
    drive.modern("first", "tools/list", envelope(capabilities or {}))
    drive.connected(server)
    drive.answer(Result({}), next(call for call, one in drive.open.items() if isinstance(one, Send)))
    drive.lines.clear()
    return drive
