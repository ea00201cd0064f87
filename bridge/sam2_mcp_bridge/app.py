"""The bridge at work: carries events to the ledger and out its actions.

Three kinds of threads. The main thread owns the ledger, the clock and stdout; one reader turns stdin into messages;
each call upstream runs in a thread of its own, so that one which cannot be stopped in time holds up nobody. All
imports are done before the reader starts (python-sdk issue 2832: on Windows an import can hang while another thread
is blocked reading a pipe).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from types import FrameType

from sam2_mcp_bridge import framing
from sam2_mcp_bridge.actions import Abort, Action, Answer, Connect, Send, Write
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.ledger import Ledger
from sam2_mcp_bridge.stdio import Wire, complain
from sam2_mcp_bridge.transport import Aborted, Exchange
from sam2_mcp_bridge.upstream import Upstream


class _Stopped(BaseException):
    """SIGTERM or Ctrl-C."""


class Bridge:
    """One host, one worker."""

    def __init__(self, config: Config, wire: Wire) -> None:
        self._wire = wire
        self._upstream = Upstream(config)
        self._ledger = Ledger(config.deadline_s, config.max_answer_bytes)
        self._events: SimpleQueue[Callable[[], list[Action]]] = SimpleQueue()
        self._exchanges: dict[int, Exchange] = {}
        self._reported: set[str] = set()

    def serve(self) -> None:
        """Run until stdin ends or stdout breaks."""
        _start(self._read)
        with suppress(OSError):  # the host no longer reads: nothing is left to do
            while self._carry_out(self._next_actions()):
                pass

    def close(self) -> None:
        """Give up what is under way and end the session upstream, within 1 s."""
        for exchange in self._exchanges.values():
            exchange.abort()
        self._upstream.close()

    def _read(self) -> None:
        splitter = framing.LineSplitter()
        while chunk := self._wire.read():
            at_s = time.monotonic()
            for line in splitter.feed(chunk):
                for message in framing.parse(line):
                    self._events.put(partial(self._ledger.received, message, at_s))
        self._events.put(self._ledger.closed)

    def _next_actions(self) -> list[Action]:
        deadline_s = self._ledger.next_deadline_s
        try:
            event = self._events.get(timeout=deadline_s and max(0.0, deadline_s - time.monotonic()))
        except Empty:
            return self._ledger.clock_moved(time.monotonic())
        return event()

    def _carry_out(self, actions: list[Action]) -> bool:
        for action in actions:
            match action:
                case Write(line):
                    self._wire.write_line(line)
                    self._ledger.written(time.monotonic())
                case Send():
                    self._exchanges[action.call] = Exchange(action.deadline_s)
                    _start(self._call, action, self._exchanges[action.call])
                case Abort(call):
                    if exchange := self._exchanges.pop(call, None):
                        exchange.abort()
                case Connect():
                    _start(self._connect)
                case _:
                    return False
        return True

    def _call(self, send: Send, exchange: Exchange) -> None:
        answer: Answer
        try:
            answer = self._upstream.request(exchange, send.method, send.params)
        except Failure as failure:
            answer = failure
        except Aborted:
            return
        except Exception as error:  # the boundary: a defect of ours must not leave a request without its line
            answer = Failure("internal", detail=type(error).__name__)
        self._report(answer)
        self._events.put(lambda: self._answered(send.call, answer))

    def _answered(self, call: int, answer: Answer) -> list[Action]:
        self._exchanges.pop(call, None)
        return self._ledger.answered(call, answer, time.monotonic())

    def _connect(self) -> None:
        try:
            self._upstream.connect()
        except Failure as failure:
            self._report(failure)

    def _report(self, answer: Answer) -> None:
        """Each kind of failure once: the station keeps every stderr line in memory (station.md 1.7 d)."""
        if isinstance(answer, Failure) and answer.code not in self._reported:
            self._reported.add(answer.code)
            complain(str(answer))


def _start(target: Callable[..., None], *args: object) -> None:
    threading.Thread(target=target, args=args, daemon=True).start()


def _stop(signal_number: int, frame: FrameType | None) -> None:
    _on_stop_signals(signal.SIG_IGN)  # once is enough: the clean-up is bounded
    raise _Stopped


def _on_stop_signals(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, handler)


def run(config: Config, wire: Wire) -> int:
    """Serve the host on `wire`; the exit code, always 0.

    Raises:
        SetupError: the settings cannot be used.
    """
    bridge = Bridge(config, wire)
    try:
        _on_stop_signals(_stop)
        bridge.serve()
    except _Stopped:
        pass
    finally:
        _on_stop_signals(signal.SIG_IGN)
        bridge.close()
    return 0
