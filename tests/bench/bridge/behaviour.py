"""What a bridge does when something is amiss, seen from a host that takes the next line for the answer.

Each scene drives one program and returns what it saw as an `Outcome`, judged from the lines that came and from nothing
else. The grade is what rows are compared by: 2 is what a host needs, 1 is a clear failure of one call, 0 is a wrong or
missing answer, or a session that is lost.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.bench.bridge.host import STATION_PATIENCE_S, Host, Server
from tests.bench.bridge.programs import Program

# What follows a fault. If the session is whole, each of these gets its own answer.
FOLLOWING_CALLS = 3
# A call that the station has given up already (its patience is 30 s) and the worker has not.
LONG_CALL_S = 33.0
DELAYS_S = (0.9, 0.5, 0.1)
START_PATIENCE_S = 15.0
FOLLOWING_PATIENCE_S = 10.0


class Outcome(NamedTuple):
    grade: int
    words: str


class Reply(NamedTuple):
    """One line and what it is for the call that was waiting."""

    kind: str  # right, told (an error for this call), foreign (an error with another id), wrong, none, ended
    after_s: float = 0.0


def judge(line: bytes | None, request_id: int, tag: str) -> str:
    """What the next line is to a call: see `Reply.kind`."""
    if not line:
        return "none" if line is None else "ended"
    try:
        message = json.loads(line)
    except ValueError:
        return "wrong"
    if not isinstance(message, dict) or "method" in message:
        return "wrong"
    result = message.get("result")
    failed = "error" in message or (isinstance(result, dict) and result.get("isError") is True)
    if failed:
        return "told" if message.get("id") == request_id else "foreign"
    return "right" if text_of(result).startswith(tag) else "wrong"


def text_of(result: Any) -> str:
    content = result.get("content") if isinstance(result, dict) else None
    blocks = [block for block in content or [] if isinstance(block, dict)]
    return "".join(str(block.get("text", "")) for block in blocks)


def order_of(tags: list[str], sent: list[str]) -> Outcome:
    if tags == sent:
        return Outcome(2, "right")
    return Outcome(0, "reversed" if tags == sent[::-1] else " ".join(tags) or "no answers")


def summary(first: Reply, following: list[Reply]) -> Outcome:
    """Grade a fault by the call that met it and by the calls after it."""
    right = sum(reply.kind == "right" for reply in following)
    words = WORDS[first.kind].format(s=first.after_s)
    if right < len(following):
        later = [WORDS[reply.kind].format(s=reply.after_s) for reply in following if reply.kind != "right"]
        return Outcome(0, f"{words}; then {right} of {len(following)} right ({later[0]})")
    return Outcome({"right": 2, "told": 1}.get(first.kind, 0), f"{words}; then all right")


WORDS = {
    "right": "right after {s:.1f} s",
    "told": "error after {s:.1f} s",
    "foreign": "error of another id after {s:.1f} s",
    "wrong": "wrong line after {s:.1f} s",
    "none": "no line in {s:.0f} s",
    "ended": "process ends after {s:.1f} s",
}


def ask(host: Host, tool: str, tag: str, patience_s: float = STATION_PATIENCE_S, **arguments: Any) -> Reply:
    began_s = time.perf_counter()
    request_id = host.call(tool, tag, **arguments)
    line = host.answer(request_id, patience_s)
    return Reply(judge(line, request_id, tag), time.perf_counter() - began_s)


def ask_more(host: Host) -> list[Reply]:
    return [ask(host, "echo", f"after {number}", FOLLOWING_PATIENCE_S) for number in range(FOLLOWING_CALLS)]


def parallel_order(host: Host, server: Server) -> Outcome:
    sent = [f"after {delay_s} s" for delay_s in DELAYS_S]
    for tag, delay_s in zip(sent, DELAYS_S, strict=True):
        host.call("wait", tag, seconds=delay_s)
    lines = [host.line(FOLLOWING_PATIENCE_S) for _ in sent]
    return order_of([text_of(json.loads(line).get("result")) for line in lines if line], sent)


def log_line(host: Host, server: Server) -> Outcome:
    return summary(ask(host, "log", "logged"), ask_more(host))


def long_call(host: Host, server: Server) -> Outcome:
    began_s = time.perf_counter()
    first = ask(host, "wait", "long", seconds=LONG_CALL_S)
    following = ask_more(host)
    # The late answer of a bridge that does not drop it comes about now, and the host takes it for the next call's.
    time.sleep(max(0.0, began_s + LONG_CALL_S + 0.5 - time.perf_counter()))
    return summary(first, following + ask_more(host))


def restart(host: Host, server: Server) -> Outcome:
    ask(host, "echo", "before")
    server.stop()
    server.start()
    return summary(ask(host, "echo", "first"), ask_more(host))


def down_in_session(host: Host, server: Server) -> Outcome:
    ask(host, "echo", "before")
    server.stop()
    first = ask(host, "echo", "while it is down")
    server.start()
    return summary(first, ask_more(host))


def down_at_start(program: Program, server: Server) -> Outcome:
    server.stop()
    with Host(program, server.url) as host:
        ready_s = host.shake_hands(START_PATIENCE_S)
        server.start()
        if ready_s is None:
            ended = host.process.poll() is not None
            return Outcome(0, "exits without an answer" if ended else f"no answer in {START_PATIENCE_S:.0f} s")
        following = ask_more(host)
    right = sum(reply.kind == "right" for reply in following)
    words = f"initialize answered after {ready_s:.1f} s; then {right} of {len(following)} right"
    return Outcome(2 if right == len(following) else 0, words)


SCENES: dict[str, Callable[[Host, Server], Outcome]] = {
    "order": parallel_order,
    "log_line": log_line,
    "long_call": long_call,
    "restart": restart,
    "down_in_session": down_in_session,
}


def play(program: Program, python: str) -> dict[str, Outcome]:
    """Every scene, each with a bridge and a server of its own. About 100 s, nearly all of it waiting."""
    outcomes = {}
    for name, scene in SCENES.items():
        with Server(python) as server, Host(program, server.url) as host:
            ready_s = host.shake_hands()
            outcomes[name] = Outcome(0, "no handshake") if ready_s is None else scene(host, server)
    with Server(python) as server:
        outcomes["down_at_start"] = down_at_start(program, server)
    return outcomes
