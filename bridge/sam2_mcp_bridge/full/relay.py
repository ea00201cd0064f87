"""Profile `full`: every request of an ordinary MCP host, as a state machine. Sans-IO like the ledger.

One line answers each request, never two and never late; a cancelled request gets none. Beyond these, only what the
host's era allows is written: progress for requests with a token, log messages on opt-in, changes that were subscribed
to, and to legacy hosts the server's requests that they have declared to serve.

    events    received, answered, streamed, connected, clock_moved, closed
    actions   Connect, Send, Listen, Extend, Abort, Reply, Write, Exit

Decides what happens next. How messages look in either era is in eras.py, who is owed what in requests.py, open
questions to the host in asking.py, the session of a legacy host in host_session.py, subscriptions in listening.py.
"""

from __future__ import annotations

import math
from typing import Any

from sam2_mcp_bridge.actions import (
    MODERN_VERSION,
    OWN_HOST,
    Abort,
    Action,
    Answer,
    Connect,
    Exit,
    Host,
    Listen,
    Refusal,
    Reply,
    Result,
    Send,
    Server,
    as_object,
)
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.full import eras, notices
from sam2_mcp_bridge.full.asking import INPUT_LIMIT_S, STATE_PREFIX, Asking, Question, reply
from sam2_mcp_bridge.full.host_session import HostSession
from sam2_mcp_bridge.full.listening import Listening
from sam2_mcp_bridge.full.requests import UNCOUNTED, Entry, Requests
from sam2_mcp_bridge.host.framing import INTERNAL_ERROR, INVALID_REQUEST, Message, Notification, Request, Response

# What a host waits for at its start. A worker that runs answers in a fraction of it.
INITIALIZE_WAIT_S = 3.0
# After a contact that failed, for a host which was promised news of it.
RECONNECT_PAUSE_S = 5.0
# For what the bridge asks on its own account; nobody waits.
OWN_REQUEST_LIMIT_S = 5.0

# Far above what hosts have under way; one that asks faster than it is answered must not fill the memory.
MAX_OPEN_REQUESTS = 1000

# Answered by what the server is: not without one.
_ABOUT_SERVER = eras.MODERN_ONLY | eras.LEGACY_ONLY


class Relay:
    """What is under way, what may be written, what is late.

    Args:
        limit_s: from the arrival of a request's line to its answer, queueing included, questions to the host not.
        max_line_bytes: above it an answer is replaced by an error that says so, anything else is left out.
        max_parallel_calls: upstream at once; the rest waits.
        hint: goes behind the server's instructions.
    """

    def __init__(self, limit_s: float, max_line_bytes: int, max_parallel_calls: int, hint: str = "") -> None:
        self._limit_s = limit_s
        self._max_parallel_calls = max_parallel_calls
        self._requests = Requests(max_line_bytes, hint)
        self._asking = Asking(self._requests)
        self._listening = Listening()
        self._session: HostSession | None = None
        self._speaker: Host | None = None  # whom the bridge speaks for upstream
        self._connecting = False
        self._reconnect_at_s: float | None = None
        self._server: Server | None = None
        self._server_log_level: str | None = None  # for modern hosts of a legacy server
        self._own_calls: dict[int, float] = {}  # which nobody waits for, with their deadlines

    @property
    def next_deadline_s(self) -> float | None:
        """When `clock_moved` must be called at the latest."""
        times_s = [entry.deadline_s for entry in self._requests]
        times_s += [entry.start_s for entry in self._requests if entry.is_queued and entry.start_s]
        times_s += [*(parked.deadline_s for parked in self._asking.parked_calls), *self._own_calls.values()]
        times_s += [at_s for at_s in (self._reconnect_at_s, self._listening.retry_at_s) if at_s is not None]
        earliest_s = min(times_s, default=math.inf)
        return earliest_s if math.isfinite(earliest_s) else None

    # Events

    def received(self, message: Message, now_s: float) -> list[Action]:
        """A message of the host, whose line came at `now_s`."""
        actions = self._expire(now_s)
        match message:
            case Request():
                actions += self._requested(message, now_s)
            case Response():
                actions += self._asking.answered(message, now_s)
            case Notification():
                actions += self._host_told(message)
            case _:
                actions += self._write_error(message.id, eras.error(message.code, f"Invalid message: {message.reason}"))
        return actions + self._advance(now_s)

    def answered(self, call: int, answer: Answer, now_s: float) -> list[Action]:
        """What a call upstream brought. A late or unknown call changes nothing."""
        actions = self._expire(now_s)
        self._own_calls.pop(call, None)
        if (entry := self._requests.of_call(call)) is not None:
            self._requests.detach(entry)
            actions += self._record(entry, answer, now_s)
        elif (parked := self._asking.parked_call(call)) is not None:
            parked.answer = answer
        elif call == self._listening.call:
            self._listening.ended(answer, now_s)
        return actions + self._advance(now_s)

    def streamed(self, call: int, message: dict[str, Any], now_s: float) -> list[Action]:
        """A notification or a request of the server, on the stream of this call."""
        actions = self._expire(now_s)
        is_own = call == self._listening.call
        if is_own:
            self._listening.streamed()
        is_known = is_own or self._requests.of_call(call) is not None or self._asking.parked_call(call) is not None
        if is_known and isinstance(message.get("method"), str):
            if type(message.get("id")) in (str, int, float):
                actions += self._server_asked(call, message, now_s)
            elif "id" not in message:
                actions += self._server_told(call, message, now_s)
        return actions + self._advance(now_s)

    def connected(self, told: Server | Failure, now_s: float) -> list[Action]:
        """The outcome of a Connect."""
        actions = self._expire(now_s)
        self._connecting, self._reconnect_at_s = False, None
        if isinstance(told, Failure):
            self._reconnect_at_s = now_s + RECONNECT_PAUSE_S if self._session is not None else None
            for entry in self._requests:
                if entry.is_queued and entry.method in _ABOUT_SERVER:
                    actions += self._requests.fail(entry, told)
        else:
            actions += self._meet(told, now_s)
        return actions + self._advance(now_s)

    def met(self, server: Server | None, now_s: float) -> list[Action]:
        """The server that is known upstream now. App says so before each event that may come of it."""
        if server is None or server is self._server:
            return []
        return [*self._expire(now_s), *self._meet(server, now_s), *self._advance(now_s)]

    def written(self, now_s: float) -> None:
        """A line has left; for this profile it does not matter when."""

    def clock_moved(self, now_s: float) -> list[Action]:
        return self._expire(now_s) + self._advance(now_s)

    def closed(self) -> list[Action]:
        """The host closed its end: nothing is written any more."""
        calls = [*self._own_calls, *self._requests.calls, *(parked.call for parked in self._asking.parked_calls)]
        return [*(Abort(call) for call in calls), *self._listening.stop(), Exit()]

    # The host

    def _requested(self, request: Request, now_s: float) -> list[Action]:
        id_value, method, params = request
        if self._requests.of_id(id_value) is not None:
            words = "Invalid Request: a request with this id is not answered yet"
            return self._write_error(id_value, eras.error(INVALID_REQUEST, words))
        if len(self._requests) >= MAX_OPEN_REQUESTS:
            return self._write_error(id_value, eras.error(INTERNAL_ERROR, "too many requests without an answer"))
        host = self._host_of(request)
        if isinstance(host, dict):
            return self._write_error(id_value, host)
        entry = Entry(id_value, method, params, now_s + self._limit_s, host)
        if method in ({"initialize", *eras.LEGACY_ONLY} if entry.modern else eras.MODERN_ONLY):
            return self._write_error(id_value, eras.not_found(method))
        self._requests.add(entry)
        if method == "ping":
            return self._requests.answer(entry, result={})
        if method == "initialize":
            entry.deadline_s = min(entry.deadline_s, now_s + INITIALIZE_WAIT_S)
            self._session = HostSession(host)
        elif entry.modern and str(as_object(params).get("requestState")).startswith(STATE_PREFIX):
            return self._resume(entry, now_s)
        return self._connect(host) if self._speaker is None or method == "initialize" else []

    def _host_of(self, request: Request) -> Host | dict[str, Any]:
        """Who asks, or the error that its envelope gets. The era is a matter of each request; without handshake and
        envelope the host is one that can do nothing."""
        has_envelope = eras.VERSION_KEY in eras.meta_of(request.params)
        if request.method == "initialize" and not has_envelope:
            return eras.legacy_host(request.params)
        known = self._speaker or OWN_HOST if self._session is None else self._session.host
        lacks_envelope = self._session is None and request.method in eras.MODERN_ONLY
        is_modern = has_envelope or lacks_envelope or known.version == MODERN_VERSION
        return eras.modern_host(request.params) if is_modern else known

    def _connect(self, host: Host) -> list[Action]:
        """Speak upstream for this host from now on."""
        self._speaker, self._connecting, self._reconnect_at_s = host, True, None
        return [Connect(host)]

    def _host_told(self, notification: Notification) -> list[Action]:
        method, params = notification
        if method == "notifications/cancelled":
            return self._cancel(as_object(params))
        if self._session is None:
            return []
        if method == "notifications/initialized":
            self._session.ready = True
            return self._news()
        if self._server is None:
            return []
        return [Reply({"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params}))]

    def _cancel(self, params: dict[str, Any]) -> list[Action]:
        entry, reason = self._requests.of_id(params.get("requestId")), params.get("reason")
        if entry is None or entry.method == "initialize":  # which MCP forbids to cancel
            return []
        self._requests.remove(entry)
        return self._requests.give_up(entry, reason if isinstance(reason, str) else None)

    def _resume(self, entry: Entry, now_s: float) -> list[Action]:
        actions, answer = self._asking.resume(entry)
        return actions if answer is None else actions + self._record(entry, answer, now_s)

    # The server

    def _server_asked(self, call: int, request: dict[str, Any], now_s: float) -> list[Action]:
        entry, parked = self._requests.of_call(call), self._asking.parked_call(call)
        if call == self._listening.call and self._session is None:
            entry, parked = self._asking.only_call(request["method"])
        asked = entry or parked or self._session
        if request["method"] == "ping":
            return [reply(request, result={})]
        if entry is not None and (entry.sets_level or entry.method == "subscriptions/listen"):
            asked = None  # there is no call that could wait for an answer
        if asked is None or not eras.offers(asked.host, request["method"]):
            return [reply(request, error=eras.not_supported())]
        if parked is not None:
            return self._asking.ask_more(parked, request)
        if entry is not None and entry.modern:
            return self._asking.park(entry, request, now_s)
        return self._asking.ask(request, Question(entry, server_id=request["id"]), now_s)

    def _server_told(self, call: int, message: dict[str, Any], now_s: float) -> list[Action]:
        entry = self._requests.of_call(call)
        if message["method"] == "notifications/cancelled":
            return self._asking.withdrawn(entry, call, as_object(message.get("params")).get("requestId"), now_s)
        if message["method"] == "notifications/progress" and self._asking.parked_call(call) is not None:
            return []  # of a request that is answered; its token may be another one's by now
        return self._write(notices.heard(message, entry, self._requests, self._session))

    def _meet(self, server: Server, now_s: float) -> list[Action]:
        if server is self._server:
            return []
        self._server, self._server_log_level, self._reconnect_at_s = server, None, None
        self._listening.met()
        return self._asking.session_ended() + self._restore(now_s) + self._news()

    def _restore(self, now_s: float) -> list[Action]:
        """Give a server with a new session what the host had set in the old one."""
        if self._session is None or self._server is None or self._server.modern:
            return []
        due_s = now_s + OWN_REQUEST_LIMIT_S
        sends = [Send(self._requests.number(), *setting, due_s) for setting in self._session.settings()]
        self._own_calls |= {send.call: send.deadline_s for send in sends}
        return [*sends]

    def _news(self) -> list[Action]:
        return [] if self._session is None else self._write(self._session.news(self._server))

    def _write(self, messages: list[dict[str, Any]]) -> list[Action]:
        return [line for message in messages for line in self._requests.write(message)]

    def _wanted(self) -> dict[str, Any] | None:
        """The filter for all whose subscriptions the bridge itself serves."""
        if self._server is None:
            return None
        filters = [entry.filter for entry in self._requests if entry.filter is not None]
        session, server = self._session, self._server
        own = eras.own_stream_filter(self._speaker, server) if session is None else session.wanted(server)
        filters += [] if own is None else [own]
        return eras.united(filters) if filters else None

    # Requests

    def _start(self, entry: Entry) -> list[Action]:
        """The next step of a request that waits: answer it here if that can be done, else send it."""
        server = self._server
        if entry.method == "initialize":
            return self._greet(entry)
        if entry.method in _ABOUT_SERVER:
            if server is None:
                return self._connect(self._speaker or entry.host)
            if entry.method == "subscriptions/listen":
                return self._listen(entry, server)
            if entry.method != "server/discover":
                return self._set(entry, server)
            if not server.modern:
                return self._requests.answer(entry, result=eras.discover_result(server))
        return self._send(entry)

    def _greet(self, entry: Entry) -> list[Action]:
        assert self._session is not None
        return self._requests.answer(entry, result=self._session.greet(self._server))

    def _set(self, entry: Entry, server: Server) -> list[Action]:
        """A setting for the whole session, which a modern server takes with each request or subscription instead."""
        session = self._session
        if session is None:
            return self._send(entry)
        if server.modern and (error := eras.setting_error(entry.method, entry.params, server)) is not None:
            return self._requests.answer(entry, error=error)
        session.set(entry.method, entry.params)
        return self._requests.answer(entry, result={}) if server.modern else self._send(entry)

    def _listen(self, entry: Entry, server: Server) -> list[Action]:
        """A subscription of a modern host: passed on to a modern server, else served from what a legacy one tells."""
        entry.deadline_s = math.inf
        if server.modern:
            return [Listen(self._requests.attach(entry, self._requests.number()), as_object(entry.params))]
        entry.filter = eras.honoured_filter(as_object(as_object(entry.params).get("notifications")), server)
        params = {"notifications": entry.filter}
        notice = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}
        return self._requests.write(eras.tagged(notice, entry.id))

    def _send(self, entry: Entry) -> list[Action]:
        call = self._requests.attach(entry, self._requests.number())
        if eras.is_quiet_at(entry.log_level, self._server, self._server_log_level):
            entry.sets_level = True
            return [Send(call, "logging/setLevel", {"level": entry.log_level}, entry.deadline_s)]
        params = as_object(entry.params) | entry.inputs if entry.inputs else entry.params
        if not entry.modern and self._session is not None and self._session.log_level is not None:
            params = eras.with_meta(as_object(params), **{eras.LOG_LEVEL_KEY: self._session.log_level})
        return [Send(call, entry.method, params, entry.deadline_s)]

    def _record(self, entry: Entry, answer: Answer, now_s: float) -> list[Action]:
        """Turn an answer of upstream into the request's line, or into the next step."""
        server = self._server
        if entry.sets_level:
            entry.sets_level, self._server_log_level = False, entry.log_level
            return []
        match answer:
            case Result(value) if not entry.modern and value.get("resultType") == "input_required":
                return self._asking.gather(entry, value, now_s)
            case Result(value) if entry.modern and server is not None and not server.modern:
                return self._requests.answer(entry, result=eras.modern_result(entry.method, value, server))
            case Result(value) if entry.method == "subscriptions/listen":
                return self._requests.answer(entry, result=eras.with_meta(value, **{eras.SUBSCRIPTION_KEY: entry.id}))
            case Result(value):
                return self._requests.answer(entry, result=value)
            case Refusal(error):
                return self._requests.answer(entry, error=eras.modern_error(error) if entry.modern else error)
            case failure:
                return self._requests.fail(entry, failure)

    def _write_error(self, id_value: str | int | None, error: dict[str, Any]) -> list[Action]:
        return self._requests.write({"jsonrpc": "2.0", "id": id_value, "error": error})

    # Time

    def _expire(self, now_s: float) -> list[Action]:
        actions: list[Action] = []
        for entry in self._requests:
            if entry.deadline_s > now_s:
                continue
            if entry.method == "initialize":
                actions += self._greet(entry)
                continue
            waited = "no_contact" if self._connecting else "still_queued"
            code, limit_s = "deadline" if entry.call is not None else waited, self._limit_s
            if entry.left_s is not None:
                code, limit_s = "no_input", INPUT_LIMIT_S
            actions += self._requests.give_up(entry, "deadline")
            actions += self._requests.fail(entry, Failure(code, subject=entry.subject, limit_s=limit_s))
        for parked in self._asking.parked_calls:
            actions += self._asking.unpark(parked) if parked.deadline_s <= now_s else []
        late = [call for call, deadline_s in self._own_calls.items() if deadline_s <= now_s]
        for call in late:
            del self._own_calls[call]
        return [*actions, *(Abort(call) for call in late)]

    def _advance(self, now_s: float) -> list[Action]:
        """Start what can be started, listen to what is wanted, take back what nobody needs to answer."""
        actions: list[Action] = []
        if self._reconnect_at_s is not None and self._reconnect_at_s <= now_s and self._speaker is not None:
            actions += self._connect(self._speaker)
        for entry in self._requests:
            if not entry.is_queued or entry.start_s > now_s:
                continue
            entry.start_s = 0.0
            has_place = entry.method in UNCOUNTED or self._requests.running < self._max_parallel_calls
            if has_place and not self._connecting:
                actions += self._start(entry)
        actions += self._listening.tend(self._server, self._wanted(), self._requests.number, now_s)
        return actions + self._asking.sweep()
