"""What an upstream does to one call, byte by byte: steps that a script runs in turn.

A step is bytes, a function of the call that gives bytes, or a coroutine function that does something to the connection.
Knows nothing of what the bridge should make of it (case.py).
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from tests.fakes.upstream import JSON, SSE, Behaviour, Call, event, head, response, tool_text

Step = bytes | Callable[[Call], bytes] | Callable[[Call], Awaitable[None]]

# The pause of a slow server; it is the fault itself and nothing waits for its end.
TRICKLE_S = 0.005
MIB = 2**20


def script(*steps: Step) -> Behaviour:
    """The steps in turn; at the end the connection is closed in an orderly way."""

    async def behave(call: Call) -> None:
        for step in steps:
            made = step if isinstance(step, bytes) else step(call)
            if isinstance(made, bytes):
                await call.send(made)
            else:
                await made

    return behave


async def reset(call: Call) -> None:
    """End the connection with RST instead of FIN."""
    sock = call.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    call.writer.close()


async def stall(call: Call) -> None:
    """Say nothing more; `call.cut` is set when the client gives up."""
    with suppress(ConnectionError):
        while await call.reader.read(65536):
            pass
    call.cut.set()


def forever(step: Step, pause_s: float = TRICKLE_S) -> Step:
    """Repeat until the client gives up."""

    async def repeat(call: Call) -> None:
        gone = asyncio.create_task(stall(call))
        piece = script(step)
        while not gone.done():
            try:
                await piece(call)
            except ConnectionError:
                break
            await asyncio.sleep(pause_s)
        call.cut.set()
        gone.cancel()

    return repeat


def times(count: int, step: Step) -> Step:
    """Repeat `count` times."""

    async def repeat(call: Call) -> None:
        piece = script(step)
        for _ in range(count):
            await piece(call)

    return repeat


def in_pieces(step: Callable[[Call], bytes], size: int = 1, pause_s: float = 0.0) -> Step:
    """The bytes of `step`, `size` of them in a segment of their own."""

    async def send(call: Call) -> None:
        call.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = step(call)
        for start in range(0, len(data), size):
            await call.send(data[start : start + size])
            await asyncio.sleep(pause_s)

    return send


def first_then(first: Behaviour, then: Behaviour) -> Behaviour:
    """`first` for the first request of a call, `then` when the bridge sends that call again."""
    seen: set[str] = set()

    async def behave(call: Call) -> None:
        again = tag_of(call) in seen
        seen.symmetric_difference_update([tag_of(call)])
        await (then if again else first)(call)

    return behave


def joined(*steps: bytes | Callable[[Call], bytes]) -> Callable[[Call], bytes]:
    return lambda call: b"".join(step if isinstance(step, bytes) else step(call) for step in steps)


# What the answers say


def arguments_of(call: Call) -> dict[str, Any]:
    """Those of a tools/call; none where the host made a mess of it."""
    params = call.message.get("params")
    arguments = params.get("arguments") if isinstance(params, dict) else None
    return arguments if isinstance(arguments, dict) else {}


def tag_of(call: Call) -> str:
    """What this very call must be answered with."""
    return str(arguments_of(call).get("tag", ""))


def own_answer(call: Call) -> dict[str, Any]:
    return response(call, tool_text(tag_of(call)))


def own_event(call: Call) -> bytes:
    return event(own_answer(call))


def own_json(call: Call) -> bytes:
    return json.dumps(own_answer(call)).encode()


def notification(method: str = "notifications/message", **params: Any) -> bytes:
    return event({"jsonrpc": "2.0", "method": method, "params": params})


def server_request(method: str, id_value: Any, **params: Any) -> bytes:
    return event({"jsonrpc": "2.0", "id": id_value, "method": method, "params": params})


SSE_HEAD = head(200, SSE)
JSON_HEAD = head(200, JSON)


def sse(*steps: Step) -> Behaviour:
    """A stream of events that the end of the connection ends."""
    return script(SSE_HEAD, *steps)


def whole(
    status: int, content_type: str, body: bytes | Callable[[Call], bytes], *headers: str, length: int | None = None
) -> Behaviour:
    """A response with a length, which need not be the right one."""

    def make(call: Call) -> bytes:
        content = body if isinstance(body, bytes) else body(call)
        return head(status, content_type, *headers, length=len(content) if length is None else length) + content

    return script(make)


def answering(change: Callable[[dict[str, Any]], Any], **dumps: Any) -> Behaviour:
    """An event whose message is the right answer, changed."""
    return sse(lambda call: event(change(own_answer(call)), **dumps))


def texts(make: Callable[[Call], str]) -> Behaviour:
    """An event that holds exactly this text, JSON or not."""
    return sse(lambda call: event(make(call)))


# A stateless server that begins to want a session makes the bridge shake hands again, within the case.
WANTS_SESSION = whole(400, "text/plain", b"Bad Request: Missing session ID")


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)


CHUNKED_SSE_HEAD = f"HTTP/1.1 200 Fake\r\ncontent-type: {SSE}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
CHUNKED_JSON_HEAD = CHUNKED_SSE_HEAD.replace(SSE.encode(), JSON.encode())
