"""Answers that no speech endpoint gives: packed, endless, sent on. None costs memory or the key."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.fakes.speech_server import wav_bytes

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.speech_client import Outcome, SpeechClient
from sam2_mcp_worker.engines.speech_ports import AudioPiece
from sam2_mcp_worker.engines.speech_wire import MAX_ANSWER_BYTES

ANSWER = json.dumps({"text": "yes", "segments": [{"start": 0, "end": 0.5, "text": "yes"}]}).encode()
# As the wire has it, two layers: 40 kB that become 20 MB that become 20 GB.
BOMB = gzip.compress(gzip.compress(bytes(20_000_000)) * 1000)


@asynccontextmanager
async def endpoint(status: str, headers: str, body: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """An address that answers every request so; and the requests' heads."""
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        seen.append(head)
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        told = f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(told.encode() + body)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", seen


async def ask(folder: Path, address: str) -> Outcome:
    path = folder / "piece.wav"
    path.write_bytes(wav_bytes(bytes(32_000)))
    client = SpeechClient("sk-test", address)
    try:
        return await client.ask(AudioPiece(path, 1.0), "whisper-1", None, Deadline.after(10), plain=False)
    finally:
        await client.close()


async def test_an_answer_that_was_packed_all_the_same_is_read(tmp_path: Path) -> None:
    async with endpoint("200 OK", "Content-Encoding: gzip\r\n", gzip.compress(ANSWER)) as (address, seen):
        outcome = await ask(tmp_path, address)
    assert outcome.value is not None and outcome.value.said[0].text == "yes"
    assert b"accept-encoding: identity" in seen[0].lower()


@pytest.mark.parametrize("packed", ["gzip", "gzip, gzip", "br"])
@pytest.mark.parametrize("body", [BOMB, b"no gzip"], ids=["bomb", "damaged"])
async def test_packed_bytes_never_become_more_than_an_answer_may_have(tmp_path: Path, packed: str, body: bytes) -> None:
    async with endpoint("200 OK", f"Content-Encoding: {packed}\r\n", body) as (address, _):
        tracemalloc.start()
        outcome = await ask(tmp_path, address)
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert outcome.failure is not None and outcome.failure.error.kind == "gateway" and outcome.paid
    assert peak_bytes < 8 * MAX_ANSWER_BYTES


async def test_neither_sound_nor_key_goes_to_where_an_endpoint_sends_on(tmp_path: Path) -> None:
    async with endpoint("200 OK", "", ANSWER) as (other, reached):
        for status in ("301 Moved", "307 Moved", "308 Moved"):
            async with endpoint(status, f"Location: {other}\r\n", b"") as (address, _):
                outcome = await ask(tmp_path, address)
            assert outcome.failure is not None and outcome.failure.error.kind == "gateway" and not outcome.paid
    assert reached == []
