"""An OpenAI-compatible speech endpoint behind the speech port: retries, costs and limits around its requests.

Owns what is true for all requests of the process: the limiter, the ledger, and what makes asking useless just now.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines import retry
from sam2_mcp_worker.engines.cost_ledger import CostLedger, Reservation
from sam2_mcp_worker.engines.heard import hearing_of
from sam2_mcp_worker.engines.provider_access import checked_address, checked_key
from sam2_mcp_worker.engines.provider_errors import does_not_fit
from sam2_mcp_worker.engines.provider_trouble import UNREACHABLE_KEPT_S, TroubleMemory
from sam2_mcp_worker.engines.purse import Purse
from sam2_mcp_worker.engines.rate_pause import RatePause
from sam2_mcp_worker.engines.request_limiter import RequestLimiter
from sam2_mcp_worker.engines.speech_client import Outcome, SpeechClient
from sam2_mcp_worker.engines.speech_errors import (
    MEANWHILE,
    Failure,
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


@dataclass(slots=True)
class _Course:
    """How one piece has gone so far. `plain` asks for text alone, which older gateways know, too."""

    plain: bool
    tries: int = 0
    failed: Counter[retry.How] = field(default_factory=Counter)


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
        self._limiter = RequestLimiter(settings.speech_in_flight)
        self._ledger = CostLedger(settings.data_dir / "spending" / "speech.sqlite", self._cap_usd)
        self._purse = Purse(self._ledger)
        self._trouble: TroubleMemory[SpeechError] = TroubleMemory("speech endpoint")
        self._pause = RatePause()
        self._plain = False
        self._broken_in_a_row = 0
        self._state = NOT_ASKED
        self._check: asyncio.Task[SpeechError | None] | None = None

    def __repr__(self) -> str:
        return f"<OpenAISpeech {self._model} [{self._limiter.in_flight} in flight]>"

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
        return self._limiter.size

    async def start(self) -> None:
        """Look up today's costs, and in the background the model: serving does not wait for the network."""
        self.check_ledger()
        if self._unusable is None:
            self._check = asyncio.create_task(self.check_model(), name="check of the speech model")

    async def close(self) -> None:
        """End the check and the connections."""
        if self._check is not None:
            self._check.cancel()
            await asyncio.gather(self._check, return_exceptions=True)
        await self._client.close()
        self._ledger.close()

    def check_ledger(self) -> None:
        """Look up what today has cost so far."""
        if self._ledger.refresh():
            self._trouble.remember_provider(unwritable(), UNREACHABLE_KEPT_S)

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
        self._trouble.remember(self._model, error)
        return error

    @property
    def trouble(self) -> SpeechError | None:
        """Why asking is useless now, None when it is not."""
        known = self._unusable or self._trouble.of_provider() or self._trouble.of_model(self._model)
        if known is not None:
            return known
        return None if self._ledger.fits(self._usd(1.0)) else cap_reached(self._cap_usd, self._ledger.today.spent.usd)

    async def transcribe(self, piece: AudioPiece, *, language: str | None, job: str, deadline: Deadline) -> Hearing:
        """The words of one piece, with retries that fit before the deadline; see `Transcriber`."""
        _check_size(piece)
        course = _Course(self._plain)
        while True:
            try:
                outcome = await self._try(piece, language, job, course, deadline)
            except TimeoutError as error:  # no turn came
                raise no_time() from error
            if outcome.transcript is not None:
                told = outcome.transcript
                self._note_success(course, told.times)
                return hearing_of(told.said, piece.duration_s, language=language or told.language, times=told.times)
            if outcome.failure is None:
                raise no_time()
            reason = await self._wait_to_retry(outcome.failure, course, deadline)
            if reason is not None:
                if self._concerns_others(outcome.failure):
                    self._trouble.remember(self._model, reason)
                raise reason

    def _concerns_others(self, failure: Failure) -> bool:
        """One piece at which the connection breaks off says nothing of the others; two in a row do."""
        if failure.how != "broken" or failure.error.kind != "unreachable":
            return True
        self._broken_in_a_row += 1
        return self._broken_in_a_row > 1

    def _note_success(self, course: _Course, times: Literal["segments", "piece"]) -> None:
        self._broken_in_a_row = 0
        self._plain = course.plain
        self._state = "works" if times == "segments" else "works, but tells no times: they are those of pieces"

    async def _try(
        self, piece: AudioPiece, language: str | None, job: str, course: _Course, until: Deadline
    ) -> Outcome:
        """One request, in a slot of its own, its price reserved before and booked after.

        Raises:
            SpeechError: found out by another piece, or the cap.
            TimeoutError: no turn came.
        """
        self._check_trouble()
        course.tries += 1
        async with self._limiter.slot(job, until, again=course.tries > 1):
            self._check_trouble()  # another piece may have found out meanwhile
            left_s = await self._pause.wait_out(until)
            if left_s:
                raise does_not_fit(rate_limited(), left_s, until)
            if until.expired:
                raise TimeoutError  # nothing is sent that nobody could wait for
            usd = self._usd(piece.duration_s)
            reservation = await self._reserve(usd, until)
            outcome = Outcome()
            try:
                outcome = await self._client.ask(piece, self._model, language, until, plain=course.plain)
            finally:
                self._purse.book(reservation, Usage(requests=1, usd=usd if outcome.paid else 0.0))
        return outcome

    def _check_trouble(self) -> None:
        error = self.trouble
        if error is not None:
            raise error.with_traceback(None)  # it is raised again and again, and must not collect all those ways

    def _usd(self, duration_s: float) -> float:
        """The price of a piece; providers count begun seconds."""
        return math.ceil(duration_s) / 60 * self._usd_per_minute

    async def _reserve(self, usd: float, until: Deadline) -> Reservation:
        got = await self._purse.reserve(usd, until)
        if got == "unwritable":
            self._trouble.remember_provider(unwritable(), UNREACHABLE_KEPT_S)
            raise unwritable()
        if got == "cap":
            raise cap_reached(self._cap_usd, self._ledger.today.spent.usd)
        return got

    async def _wait_to_retry(self, failure: Failure, course: _Course, until: Deadline) -> SpeechError | None:
        """Wait until the next try; or why there is none."""
        if failure.plainer and not course.plain:
            course.plain = True
            return None
        if failure.limits_rate:
            self._pause.note(failure.asked_s or 0.0)
        course.failed[failure.how] += 1
        if not failure.retry or course.failed[failure.how] >= retry.MAX_TRIES[failure.how]:
            return failure.error
        wait_s = retry.wait_s(course.tries, failure.asked_s, random.random())  # noqa: S311  (spreads waits, no secret)
        if wait_s + retry.SHORTEST_TRY_S > until.remaining_s():
            return does_not_fit(failure.error, failure.asked_s, until)
        await asyncio.sleep(wait_s)
        return None

    def status(self) -> dict[str, Any]:
        """What get_status and `doctor` tell; reads no disk and asks nobody."""
        trouble = self.trouble
        return {
            "sends_to": self._client.host,
            "model": self._model,
            "state": self._state,
            "in_flight": self._limiter.in_flight,
            "waiting": self._limiter.waiting,
            "max_in_flight": self._limiter.size,
            "today": self._ledger.today.told(self._cap_usd),
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
