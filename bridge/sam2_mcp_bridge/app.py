"""The bridge at work: carries events to the profile's state machine and out its actions.

Three kinds of threads. The main thread owns the state machine, the clock and stdout; one reader turns stdin into
messages; each call upstream has a thread to itself, so that one which cannot be stopped in time holds up nobody.
What every bridge needs is imported before the reader starts; the little that comes later, for servers and hosts that
are met later, is safe because stdio.py has taken the pipe off descriptor 0 (python-sdk issue 2832: on Windows an import
can hang while another thread is blocked reading a pipe there).

Profile `station` is a Ledger, `full` a Relay; `auto` is a Relay until the first request shows that a station asks.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING, Any

from sam2_mcp_bridge.actions import (
    HANDSHAKE_VERSIONS,
    Abort,
    Action,
    Answer,
    Connect,
    Exit,
    Extend,
    Host,
    Listen,
    Reply,
    Send,
    Server,
    Write,
)
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.host import framing, outcomes
from sam2_mcp_bridge.host.ledger import Ledger
from sam2_mcp_bridge.process import oom
from sam2_mcp_bridge.process.memory import Trimmer
from sam2_mcp_bridge.process.stdio import Wire, complain
from sam2_mcp_bridge.process.threads import start
from sam2_mcp_bridge.transport.transport import Aborted, Exchange
from sam2_mcp_bridge.upstream.upstream import Upstream

if TYPE_CHECKING:
    from sam2_mcp_bridge.full.relay import Relay

# Messages of upstream that wait for the main thread. Beyond, their readers wait, so that a host which reads slowly
# slows a talkative server down instead of filling the memory.
MAX_STREAMED_AHEAD = 64

# What the host tells the server of its own accord, and answers to it, under way at once. Each holds a thread and a
# descriptor for as long as the server wants, up to 5 s; the rest waits.
MAX_REPLYING = 8

# A host that closes stdin is gone, or will be; what it has not read by then is lost. With the farewell to the worker
# the end takes 1 s at most.
FULL_PIPE_S = 0.3

STOP_SIGNALS = [signal.SIGTERM, signal.SIGINT] + ([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])


class _Stopped(BaseException):
    """One of the stop signals."""


class Bridge:
    """One host, one worker.

    Args:
        stuck: called when stdin has ended and stdout is a full pipe that nobody reads.
    """

    def __init__(self, config: Config, wire: Wire, stuck: Callable[[], None] = lambda: None) -> None:
        self._wire = wire
        self._config = config
        self._upstream = Upstream(config)
        self._request = _with_uploads(config, self._upstream) if config.share else self._upstream.request
        self._undecided = config.profile == "auto"
        self._profile: Ledger | Relay = _ledger(config) if config.profile == "station" else _relay(config)
        self._events: SimpleQueue[Callable[[], list[Action]]] = SimpleQueue()
        self._exchanges: dict[int, Exchange] = {}
        self._streamed_ahead = threading.BoundedSemaphore(MAX_STREAMED_AHEAD)
        self._speaks_for: Host | None = None
        self._one_contact = threading.Lock()
        self._replies: deque[dict[str, Any]] = deque()
        self._replying = 0
        self._reported: set[str] = set()
        self._served = threading.Event()
        self._trimmer = Trimmer()
        self._stuck = stuck

    def serve(self) -> None:
        """Run until stdin ends or stdout breaks."""
        start(self._read)
        try:
            while self._carry_out(self._next_actions()):
                pass
        except OSError:
            pass  # the host no longer reads: nothing is left to do
        finally:
            self._served.set()

    def close(self) -> None:
        """Give up what is under way and end the session upstream, within 1 s."""
        for exchange in self._exchanges.values():
            exchange.abort()
        self._upstream.close()

    def _read(self) -> None:
        splitter = framing.LineSplitter()
        while chunk := self._wire.read():
            self._take(splitter.feed(chunk))
        self._events.put(lambda: self._profile.closed())
        if not self._served.wait(FULL_PIPE_S):
            self._stuck()

    def _take(self, lines: list[bytes | None]) -> None:
        """In a frame of its own: a reader that waits for more must hold no line and no message, megabytes at times."""
        at_s = time.monotonic()
        for line in lines:
            for message in framing.parse(line):
                self._events.put(partial(self._received, message, at_s))

    def _received(self, message: framing.Message, at_s: float) -> list[Action]:
        # A host may ping before it begins, and only then.
        if self._undecided and isinstance(message, framing.Request) and message.method != "ping":
            self._undecided = False
            station = station_asks(message)
            self._profile = _ledger(self._config) if station else self._profile
            self._upstream.host_is("station" if station else "full")
        return self._profile.received(message, at_s)

    def _next_actions(self) -> list[Action]:
        times_s = [at_s for at_s in (self._profile.next_deadline_s, self._trimmer.due_s) if at_s is not None]
        try:
            event = self._events.get(timeout=max(0.0, min(times_s) - time.monotonic()) if times_s else None)
        except Empty:
            event = self._clock_moved
        return self._news() + event()

    def _clock_moved(self) -> list[Action]:
        self._trimmer.clock_moved(time.monotonic())
        return self._profile.clock_moved(time.monotonic())

    def _carry_out(self, actions: list[Action]) -> bool:
        for action in actions:
            match action:
                case Write(line):
                    self._wire.write_line(line)
                    self._profile.written(time.monotonic())
                case Exit():
                    return False
                case _:
                    self._carry_upstream(action)
        return True

    def _carry_upstream(self, action: Connect | Send | Listen | Extend | Abort | Reply) -> None:
        match action:
            case Send(call, method, params, deadline_s):
                self._open(call, deadline_s, self._request, method, params)
            case Listen(call, params):
                self._open(call, math.inf, self._upstream.listen, params)
            case Extend(call, deadline_s) if call in self._exchanges:
                self._exchanges[call].deadline_s = deadline_s
            case Abort(call, reason) if call in self._exchanges:
                exchange = self._exchanges.pop(call)
                exchange.abort()
                _try_start(self._upstream.cancelled, exchange, reason)
            case Connect(host):
                self._speaks_for = host
                if not _try_start(self._connect):
                    self._tell(Failure("internal", detail="no thread"))
            case Reply(message):
                self._replies.append(message)
                self._start_replies()

    def _open(self, call: int, deadline_s: float, ask: Callable[..., Answer], *what: Any) -> None:
        exchange = self._exchanges[call] = Exchange(deadline_s)
        if not _try_start(self._call, call, partial(ask, exchange, *what)):
            self._events.put(lambda: self._answered(call, Failure("internal", detail="no thread")))

    def _call(self, call: int, ask: Callable[..., Answer]) -> None:
        answer: Answer
        try:
            answer = ask(on_message=self._on_message(call))
        except Failure as failure:
            answer = failure.bare()
        except Aborted:
            return
        except Exception as error:  # the boundary: a defect of ours must not leave a request without its line
            answer = Failure("internal", detail=type(error).__name__)
        self._report(answer)
        self._events.put(lambda: self._answered(call, answer))

    def _on_message(self, call: int) -> Callable[[dict[str, Any]], None] | None:
        relay = self._profile
        if isinstance(relay, Ledger):
            return None

        def streamed(message: dict[str, Any]) -> list[Action]:
            self._streamed_ahead.release()
            return relay.streamed(call, message, time.monotonic())

        def on_message(message: dict[str, Any]) -> None:
            self._streamed_ahead.acquire()
            self._events.put(partial(streamed, message))

        return on_message

    def _answered(self, call: int, answer: Answer) -> list[Action]:
        self._exchanges.pop(call, None)
        now_s = time.monotonic()
        self._trimmer.worked(now_s)
        return self._profile.answered(call, answer, now_s)

    def _news(self) -> list[Action]:
        """The relay must know a new or changed server before anything that came of it."""
        return [] if isinstance(self._profile, Ledger) else self._profile.met(self._upstream.server, time.monotonic())

    def _connect(self) -> None:
        told: Server | Failure
        try:
            with self._one_contact:  # whoever is the last asks for the newest host
                told = self._upstream.connect(self._speaks_for)
        except Failure as failure:
            self._report(failure)
            told = failure.bare()
        except Exception as error:  # the boundary, as above: requests wait for the outcome
            told = Failure("internal", detail=type(error).__name__)
        oom.at_work()  # what a session needs, it has by now
        self._tell(told)

    def _tell(self, told: Server | Failure) -> None:
        relay = self._profile
        if not isinstance(relay, Ledger):
            self._events.put(lambda: relay.connected(told, time.monotonic()))

    def _start_replies(self) -> None:
        while self._replies and self._replying < MAX_REPLYING and _try_start(self._reply, self._replies[0]):
            self._replies.popleft()
            self._replying += 1

    def _reply(self, message: dict[str, Any]) -> None:
        try:
            self._upstream.reply(message)
        except Failure as failure:
            self._report(failure)
        except RecursionError:  # what the host sent can be read but not be written; its server hears nothing
            self._report(Failure("internal", detail="an answer of the host is nested too deeply"))
        finally:
            self._events.put(self._replied)

    def _replied(self) -> list[Action]:
        self._replying -= 1
        self._start_replies()
        return []

    def _report(self, answer: Answer) -> None:
        """Each kind of failure once: the station keeps every stderr line in memory (station.md 1.7 d)."""
        if isinstance(answer, Failure) and answer.code not in self._reported:
            self._reported.add(answer.code)
            complain(str(answer))


def _try_start(target: Callable[..., None], *args: object) -> bool:
    try:
        start(target, *args)
    except RuntimeError:  # the limit of threads or of memory
        return False
    return True


def _ledger(config: Config) -> Ledger:
    return Ledger(config.deadline_s, config.max_answer_bytes, hint=outcomes.hint_of(config.share))


def _relay(config: Config) -> Relay:
    # Not above: a station pays for every module, once a session. All that a relay may need, before stdin is read.
    from sam2_mcp_bridge.full import relay
    from sam2_mcp_bridge.upstream import listen, modern  # noqa: F401

    hint = outcomes.hint_of(config.share)
    return relay.Relay(config.deadline_s, config.max_answer_bytes, config.max_parallel_calls, hint)


def station_asks(request: framing.Request) -> bool:
    """Whether a host that begins like this is the station, or as simple as it: one that takes the next line."""
    if request.method != "initialize" or not isinstance(request.params, dict):
        return False
    info = request.params.get("clientInfo")
    name = str(info.get("name", "")).lower() if isinstance(info, dict) else ""
    oldest = request.params.get("protocolVersion") == HANDSHAKE_VERSIONS[0]
    return oldest or "station" in name or "xgen" in name


def _with_uploads(config: Config, upstream: Upstream) -> Callable[..., Answer]:
    from sam2_mcp_bridge.files.uploads import Uploads  # OpenSSL's hashes and more, for those who share a folder

    return Uploads(config, upstream).request


def _stop(signal_number: int, frame: FrameType | None) -> None:
    _on_stop_signals(signal.SIG_IGN)  # once is enough: the clean-up is bounded
    raise _Stopped


def _interrupt() -> None:
    """Wake the main thread out of a write that nobody takes."""
    if hasattr(signal, "pthread_kill") and (main := threading.main_thread().ident) is not None:
        signal.pthread_kill(main, signal.SIGTERM)
    else:  # pragma: no cover - Windows, which knows no such thing
        os._exit(0)


def _on_stop_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for name in STOP_SIGNALS:
        if name != getattr(signal, "SIGHUP", None) or signal.getsignal(name) != signal.SIG_IGN:  # nohup
            signal.signal(name, handler)


def run(config: Config, wire: Wire) -> int:
    """Serve the host on `wire`; the exit code, always 0.

    Raises:
        SetupError: the settings cannot be used.
    """
    bridge = Bridge(config, wire, _interrupt)
    try:
        _on_stop_signals(_stop)
        bridge.serve()
    except _Stopped:
        pass
    finally:
        _on_stop_signals(signal.SIG_IGN)
        bridge.close()
    return 0
