"""An MCP server whose one tool answers with as many bytes as it is asked for. Run as a program, it serves on PORT.

It is started in a container of its own that shares the station's network, so that a bridge reaches it as
127.0.0.1 while its memory is not the station's.
"""

from __future__ import annotations

import signal

from tests.fakes.upstream import Call, FakeUpstream, text

PORT = 9765


def text_of(tag: str, size_bytes: int) -> str:
    """ASCII of exactly this size that only this tag has."""
    return (f"{tag} " * (size_bytes // (len(tag) + 1) + 1))[:size_bytes]


async def sized(call: Call) -> None:
    arguments = call.message["params"]["arguments"]
    await text(text_of(arguments["tag"], arguments["size_bytes"]))(call)


def main() -> None:
    with FakeUpstream(PORT) as fake:
        fake.on["tools/call"] = sized
        signal.sigwait([signal.SIGTERM, signal.SIGINT])


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    main()
