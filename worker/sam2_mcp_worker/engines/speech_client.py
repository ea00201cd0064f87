"""One request to an OpenAI-compatible speech endpoint: sent, read, and what came of it.

Owns the HTTP client; knows neither retries nor limits. Neither sound, words nor key is logged.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.speech_errors import Failure, SpeechError, explain, explain_status, no_endpoint
from sam2_mcp_worker.engines.speech_ports import AudioPiece
from sam2_mcp_worker.engines.speech_wire import MAX_ANSWER_BYTES, Transcript, form_fields, read_transcript

# Where nothing answers at all, a request must not use up its whole time finding that out; as with Claude.
CONNECT_TIMEOUT_S = 5.0

HTTP_ERRORS = (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL)

# At DEBUG these log headers as they are, the key included.
for _name in ("httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a request: a transcript, a failure, or neither where the deadline came first."""

    transcript: Transcript | None = None
    failure: Failure | None = None

    @property
    def paid(self) -> bool:
        """Whether the provider may ask money for it: not for what it declined or never got."""
        return self.failure is None or self.failure.how == "broken"


class SpeechClient:
    """Asks one endpoint with one key."""

    def __init__(self, api_key: str, base_url: str) -> None:
        self._key = api_key
        self._base_url = base_url.rstrip("/")
        self._http = httpx2.AsyncClient(
            # Not compressed: a kilobyte may become a megabyte, more than once.
            headers={"Authorization": f"Bearer {api_key}", "Accept-Encoding": "identity"},
            # A redirect would carry sound and key to a host that nobody has set.
            follow_redirects=False,
        )

    @property
    def host(self) -> str:
        """Where sound goes."""
        return str(urlsplit(self._base_url).hostname)

    async def close(self) -> None:
        """Close its connections."""
        await self._http.aclose()

    async def ask(
        self, piece: AudioPiece, model: str, language: str | None, until: Deadline, *, plain: bool
    ) -> Outcome:
        """Send a piece and read the answer; what goes wrong outside of this machine is in the outcome too."""
        data = await asyncio.to_thread(piece.path.read_bytes)
        request = self._http.build_request(
            "POST",
            f"{self._base_url}/audio/transcriptions",
            data=form_fields(model, language, plain=plain),
            files={"file": ("piece.wav", data, "audio/wav")},
            # Ours is the shorter one, so that a slow answer is told from a connection that never came about.
            timeout=httpx2.Timeout(until.remaining_s() + 5.0, connect=CONNECT_TIMEOUT_S),
        )
        try:
            async with asyncio.timeout(until.remaining_s()):
                status, headers, body = await self._send(request)
        except TimeoutError:
            return Outcome()
        except HTTP_ERRORS as error:
            return Outcome(failure=explain(error, secret=self._key))
        if status != httpx2.codes.OK:
            return Outcome(failure=explain_status(status, headers, body, model=model, secret=self._key))
        transcript = read_transcript(body, piece.duration_s)
        if transcript is None:
            return Outcome(failure=no_endpoint("its answer is not in the format of a transcription"))
        return Outcome(transcript)

    async def look_up(self, model: str, timeout_s: float) -> SpeechError | None:
        """Ask the models endpoint, which costs nothing, whether it knows the model; None when it does."""
        address = f"{self._base_url}/models/{model}"
        timeout = httpx2.Timeout(timeout_s + 5.0, connect=CONNECT_TIMEOUT_S)
        try:
            async with asyncio.timeout(timeout_s):
                status, headers, body = await self._send(self._http.build_request("GET", address, timeout=timeout))
        except TimeoutError:
            return SpeechError("timeout", f"the models endpoint gave no answer in {timeout_s:.0f} s")
        except HTTP_ERRORS as error:
            return explain(error, secret=self._key).error
        if status == httpx2.codes.OK:
            return None
        told = explain_status(status, headers, body, model=model, secret=self._key).error
        # A gateway need not have this endpoint, and a key may be good for sound alone.
        if status != httpx2.codes.FORBIDDEN and told.kind in ("auth", "model", "unreachable"):
            return told
        return SpeechError("gateway", f"the models endpoint answers HTTP {status}")

    async def _send(self, request: httpx2.Request) -> tuple[int, httpx2.Headers, bytes]:
        response = await self._http.send(request, stream=True)
        try:
            parts, size = [], 0
            async for part in response.aiter_raw():
                size += len(part)
                if size > MAX_ANSWER_BYTES:
                    return response.status_code, response.headers, b""  # no transcription is that long
                parts.append(part)
        finally:
            await response.aclose()
        body = b"".join(parts)
        if response.headers.get("content-encoding", "").strip().lower() == "gzip":
            body = _unpacked(body)  # some proxies pack all the same
        return response.status_code, response.headers, body


def _unpacked(body: bytes) -> bytes:
    """What was packed, no more of it than an answer may have; nothing of what is damaged."""
    try:
        return zlib.decompressobj(wbits=zlib.MAX_WBITS + 16).decompress(body, MAX_ANSWER_BYTES)
    except zlib.error:
        return b""
