"""An OpenAI-compatible speech endpoint behind the speech port: its prices, its state, what it is asked."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Literal

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.heard import hearing_of
from sam2_mcp_worker.engines.paid_requests import PaidRequests, Wordings
from sam2_mcp_worker.engines.provider_access import checked_address, checked_key
from sam2_mcp_worker.engines.speech_client import SpeechClient
from sam2_mcp_worker.engines.speech_errors import (
    MEANWHILE,
    SpeechError,
    cap_reached,
    no_time,
    rate_limited,
    unwritable,
)
from sam2_mcp_worker.engines.speech_ports import AudioPiece, Hearing
from sam2_mcp_worker.engines.speech_wire import MAX_FILE_BYTES
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.spending import Usage

DEFAULT_ADDRESS = "https://api.openai.com/v1"
# Raise it whenever the same answer may be understood otherwise: it is part of every cache key.
WIRE_VERSION = 1
# A look-up is a short GET; a worker that starts without a network must not hang on to it.
CHECK_TIMEOUT_S = 10.0
NOT_ASKED = "not asked yet"
# What the wire adds to the file: the form's other fields and its boundaries.
FORM_BYTES = 4096


class OpenAISpeech:
    """A Transcriber. `start` looks up the model in the background, `close` ends everything.

    `unusable` says what is wrong with key or address for good; then nothing is ever sent.
    """

    def __init__(self, settings: Settings, client: SpeechClient, unusable: SpeechError | None = None) -> None:
        self._client = client
        self._unusable = unusable
        self._model = settings.speech_model
        self._usd_per_minute = settings.speech_usd_per_minute
        self._cap_usd = settings.speech_daily_cap_usd
        self._requests: PaidRequests[SpeechError] = PaidRequests(
            "speech endpoint",
            self._model,
            Wordings(cap_reached, unwritable, no_time, rate_limited),
            ledger=settings.data_dir / "spending" / "speech.sqlite",
            cap_usd=self._cap_usd,
            cheapest_usd=self._usd(1.0),
            in_flight=settings.speech_in_flight,
        )
        self._state = NOT_ASKED
        self._check: asyncio.Task[SpeechError | None] | None = None

    def __repr__(self) -> str:
        return f"<OpenAISpeech {self._model} [{self._requests.limiter.in_flight} in flight]>"

    @property
    def name(self) -> str:
        """Model and host."""
        return f"{self._model} at {self._client.host}"

    @property
    def identity(self) -> str:
        """Host, model and version of the wire."""
        return f"openai-speech/{WIRE_VERSION}/{self._client.host}/{self._model}"

    @property
    def quality(self) -> Literal["provider", "low"]:
        """As good as the provider's model."""
        return "provider"

    @property
    def costs_money(self) -> bool:
        """Every piece."""
        return True

    @property
    def where(self) -> str:
        """The host that sound is sent to."""
        return self._client.host

    @property
    def pieces_in_flight(self) -> int:
        """As many as the limiter lets through."""
        return self._requests.limiter.size

    async def start(self) -> None:
        """Look up today's costs, and in the background the model: serving does not wait for the network."""
        self._requests.check_ledger()
        if self._unusable is None:
            self._check = asyncio.create_task(self.check_model(), name="check of the speech model")

    async def close(self) -> None:
        """End the check and the connections."""
        if self._check is not None:
            self._check.cancel()
            await asyncio.gather(self._check, return_exceptions=True)
        await self._client.close()
        self._requests.ledger.close()

    def check_ledger(self) -> None:
        """Look up what today has cost so far."""
        self._requests.check_ledger()

    async def check_model(self) -> SpeechError | None:
        """Ask the models endpoint, which costs nothing; an error when nothing can be transcribed.

        An endpoint that does not exist, as with many gateways, or does not answer leaves the model `not verified`.
        """
        if self._unusable is not None:
            return self._unusable
        error = await self._client.look_up(self._model, CHECK_TIMEOUT_S)
        if self._state == NOT_ASKED:  # else a piece has shown it already
            self._state = "verified" if error is None else f"not verified: {error.what}"
        if error is None or error.kind not in ("auth", "model", "unreachable"):
            return None
        self._requests.remember(error)
        return error

    @property
    def trouble(self) -> SpeechError | None:
        """Why asking is useless now, None when it is not."""
        return self._unusable or self._requests.trouble

    async def transcribe(self, piece: AudioPiece, *, language: str | None, job: str, deadline: Deadline) -> Hearing:
        """The words of one piece, with retries that fit before the deadline; see `Transcriber`."""
        _check_size(piece)
        if self._unusable is not None:
            raise self._unusable.with_traceback(None)
        usd = self._usd(piece.duration_s)
        told = await self._requests.ask(
            lambda plain: self._client.ask(piece, self._model, language, deadline, plain=plain),
            lambda _: Usage(requests=1, usd=usd),
            worst_usd=usd,
            job=job,
            until=deadline,
        )
        self._state = "works" if told.times == "segments" else "works, but tells no times: they are those of pieces"
        return hearing_of(told.said, piece.duration_s, language=language or told.language, times=told.times)

    def _usd(self, duration_s: float) -> float:
        """The price of a piece; providers count begun seconds."""
        return math.ceil(duration_s) / 60 * self._usd_per_minute

    def status(self) -> dict[str, Any]:
        """What get_status and `doctor` tell; reads no disk and asks nobody."""
        trouble = self.trouble
        return {
            "sends_to": self._client.host,
            "model": self._model,
            "state": self._state,
            "in_flight": self._requests.limiter.in_flight,
            "waiting": self._requests.limiter.waiting,
            "max_in_flight": self._requests.limiter.size,
            "today": self._requests.ledger.today.told(self._cap_usd),
            "trouble": None if trouble is None else trouble.public_text,
        }


def _check_size(piece: AudioPiece) -> None:
    size = piece.path.stat().st_size + FORM_BYTES
    if size > MAX_FILE_BYTES:
        raise SpeechError(
            "too_large",
            f"a piece of {size // 10**6} MB is more than a speech endpoint takes",
            rule=f"at most {MAX_FILE_BYTES} bytes",
            next_step="call again with a shorter range (start_s, end_s)",
        )


def build_openai_speech(settings: Settings) -> OpenAISpeech:
    """The engine for these settings; sends nothing yet. A key or an address that cannot be one is its trouble."""
    key = settings.openai_api_key
    assert key is not None  # choose_speech has looked
    address = settings.openai_base_url or DEFAULT_ADDRESS
    try:
        text = checked_key(key, "OPENAI_API_KEY", error=SpeechError, meanwhile=MEANWHILE)
        address = checked_address(address, "OPENAI_BASE_URL", error=SpeechError, meanwhile=MEANWHILE)
    except SpeechError as error:
        return OpenAISpeech(settings, SpeechClient("", DEFAULT_ADDRESS), error)
    return OpenAISpeech(settings, SpeechClient(text, address))
