"""One request to an OpenAI-compatible speech endpoint: sent, read, and what came of it.

Knows neither retries nor limits.
"""

from __future__ import annotations

import asyncio

import httpx2

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines import paid_requests
from sam2_mcp_worker.engines.openai_http import HTTP_ERRORS, OpenAiHttp
from sam2_mcp_worker.engines.speech_errors import SpeechError, explain, explain_status, no_endpoint
from sam2_mcp_worker.engines.speech_ports import AudioPiece
from sam2_mcp_worker.engines.speech_wire import MAX_ANSWER_BYTES, Transcript, form_fields, read_transcript

Outcome = paid_requests.Outcome[Transcript, SpeechError]


class SpeechClient:
    """Asks one endpoint with one key."""

    def __init__(self, api_key: str, base_url: str) -> None:
        self._key = api_key
        self._http = OpenAiHttp(api_key, base_url, max_answer_bytes=MAX_ANSWER_BYTES)

    @property
    def host(self) -> str:
        """Where sound goes."""
        return self._http.host

    async def close(self) -> None:
        """Close its connections."""
        await self._http.close()

    async def ask(
        self, piece: AudioPiece, model: str, language: str | None, until: Deadline, *, plain: bool
    ) -> Outcome:
        """Send a piece and read the answer; what goes wrong outside of this machine is in the outcome too."""
        data = await asyncio.to_thread(piece.path.read_bytes)
        form = {
            "data": form_fields(model, language, plain=plain),
            "files": {"file": ("piece.wav", data, "audio/wav")},
        }
        left_s = until.remaining_s()
        try:
            async with asyncio.timeout(left_s):
                status, headers, body = await self._http.send("POST", "audio/transcriptions", timeout_s=left_s, **form)
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
        try:
            async with asyncio.timeout(timeout_s):
                status, headers, body = await self._http.send("GET", f"models/{model}", timeout_s=timeout_s)
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
