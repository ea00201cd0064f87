"""Claude behind the vision port: one look at a tile, with retries, costs and limits around the requests it takes.

Owns what is true for all requests of the process: the limiter, the ledger, and what makes asking useless just now.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines import retry
from sam2_mcp_worker.engines.claude_answer import Cut, read_answer
from sam2_mcp_worker.engines.claude_client import Answer, ClaudeClient, Question
from sam2_mcp_worker.engines.claude_errors import (
    MEANWHILE,
    Failure,
    broken_off,
    cap_reached,
    no_time,
    rate_limited,
    unwritable,
)
from sam2_mcp_worker.engines.claude_models import ModelState, check_model
from sam2_mcp_worker.engines.claude_prompt import SYSTEM, answer_schema, prompt_version, request_text
from sam2_mcp_worker.engines.cost_ledger import CostLedger, Reservation
from sam2_mcp_worker.engines.ports import Sight, TilePicture, VisionModel, Wanted
from sam2_mcp_worker.engines.provider_access import checked_address, checked_key
from sam2_mcp_worker.engines.provider_errors import does_not_fit
from sam2_mcp_worker.engines.provider_trouble import UNREACHABLE_KEPT_S, TroubleMemory
from sam2_mcp_worker.engines.purse import Purse
from sam2_mcp_worker.engines.rate_pause import RatePause
from sam2_mcp_worker.engines.request_limiter import RequestLimiter
from sam2_mcp_worker.engines.vision_errors import VisionError
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.spending import spending_job

# Kept free before the deadline for reading what has arrived: the slowest recovery takes 0.1 s (reference/vision.md 1).
READING_MARGIN_S = 0.25
# More than words and schema can be tokenised to is a token a byte; the rest is what the API adds around them.
REQUEST_OVERHEAD_TOKENS = 600
# A patch of 28 x 28 px is a token; new models count up to a third more for large pictures (reference/vision.md 1).
PATCH_PX = 28
IMAGE_TOKENS_FACTOR = 1.4

DEFAULT_ADDRESS = "https://api.anthropic.com"
MODELS: tuple[VisionModel, VisionModel] = ("fast", "accurate")

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Course:
    """How one look has gone so far: the longest answer of a stream that broke off, and how often what was tried.

    `plain` leaves out what older gateways do not know.
    """

    best: Answer = field(default_factory=Answer)
    tries: int = 0
    failed: Counter[retry.How] = field(default_factory=Counter)
    plain: bool = False


class ClaudeVision:
    """A VisionProvider. `start` looks up the models in the background, `close` ends everything."""

    def __init__(self, settings: Settings, client: ClaudeClient) -> None:
        self._client = client
        self._languages = settings.ocr_languages
        self._effort = settings.claude_effort
        self._guarded = settings.claude_oversized_image_error
        self._models: dict[VisionModel, ModelState] = {
            "fast": ModelState(
                settings.claude_fast_model, settings.claude_fast_max_tokens, settings.claude_fast_usd_per_mtok
            ),
            "accurate": ModelState(
                settings.claude_accurate_model,
                settings.claude_accurate_max_tokens,
                settings.claude_accurate_usd_per_mtok,
            ),
        }
        self._limiter = RequestLimiter(settings.vision_in_flight)
        self._cap_usd = settings.claude_daily_cap_usd
        self._ledger = CostLedger(settings.data_dir / "spending" / "claude.sqlite", self._cap_usd)
        self._purse = Purse(self._ledger)
        self._trouble: TroubleMemory[VisionError] = TroubleMemory("Claude")
        self._pauses = {model: RatePause() for model in MODELS}
        self._check: asyncio.Task[list[VisionError]] | None = None

    def __repr__(self) -> str:
        return f"<ClaudeVision [{self._limiter.in_flight} in flight, {self._limiter.waiting} waiting]>"

    def identity(self, model: VisionModel) -> str:
        """Provider, model and version of prompt and schema."""
        version = prompt_version(self._languages)
        return f"claude/{self._models[model].model_id}/{self._effort}/{version}"

    @property
    def where(self) -> str:
        """The host that pictures are sent to."""
        return self._client.host

    async def start(self) -> None:
        """Look up today's costs, and the models in the background: serving does not wait for the network."""
        self.check_ledger()
        self._check = asyncio.create_task(self.check_models(), name="check of Claude's models")

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

    async def check_models(self) -> list[VisionError]:
        """Ask the models endpoint about both models, which costs nothing; what is wrong with them."""
        errors: list[VisionError] = []
        for model in MODELS:
            error = await check_model(self._client, self._models[model])
            if error is None:
                continue
            self._trouble.remember(model, error)
            errors.append(error)
            if error.kind != "model":  # the other model fares no better
                break
        return errors

    def trouble_with(self, model: VisionModel) -> VisionError | None:
        """The same of one model."""
        return self._trouble_of_provider() or self._trouble.of_model(model)

    @property
    def trouble(self) -> WorkerError | None:
        """Why asking is useless now, None when it is not, or when one of the two models still works."""
        provider = self._trouble_of_provider()
        if provider is not None:
            return provider
        lost = [self._trouble.of_model(model) for model in MODELS]
        return lost[0] if all(lost) else None

    def _trouble_of_provider(self) -> VisionError | None:
        known = self._trouble.of_provider()
        if known is not None:
            return known
        cheapest = min(state.worst_usd(0) for state in self._models.values())
        return None if self._ledger.fits(cheapest) else cap_reached(self._cap_usd, self._ledger.today.spent.usd)

    def _check_trouble(self, model: VisionModel) -> None:
        error = self.trouble_with(model)
        if error is not None:
            raise error.with_traceback(None)  # it is raised again and again, and must not collect all those ways

    async def look(self, picture: TilePicture, wanted: Wanted, *, model: VisionModel, deadline: Deadline) -> Sight:
        """Ask once, with retries that fit before the deadline; see `VisionProvider`."""
        left_s = deadline.remaining_s()
        until = Deadline.after(left_s - min(READING_MARGIN_S, left_s / 4))
        question = self._question(picture, wanted, self._models[model])
        course = _Course()
        while True:
            try:
                await self._wait_out_pause(model, until)
                answer = await self._try(question, model, course, until)
            except TimeoutError:  # no turn came
                return self._cut_or(course.best, question, wanted, "time", no_time())
            except VisionError as error:  # found out by another tile, or the cap
                return self._cut_or(course.best, question, wanted, "connection", error)
            if answer.chars > course.best.chars or answer.stop_reason:
                course.best = answer
            if answer.stop_reason:
                return self._ended(answer, question, wanted)
            if answer.timed_out:
                return self._cut_or(course.best, question, wanted, "time", no_time())
            if answer.failure is not None and answer.failure.limits_rate:
                self._pauses[model].note(answer.failure.asked_s or 0.0)
            reason = await self._wait_to_retry(answer, course, until)
            if reason is not None:
                if not answer.begun:  # a broken stream says nothing about the provider
                    self._trouble.remember(model, reason)
                return self._cut_or(course.best, question, wanted, "connection", reason)

    def _question(self, picture: TilePicture, wanted: Wanted, state: ModelState) -> Question:
        text = request_text(wanted, width_px=picture.width_px, height_px=picture.height_px, languages=self._languages)
        return Question(state.model_id, state.max_tokens, self._effort, picture, text, answer_schema(wanted))

    async def _wait_out_pause(self, model: VisionModel, until: Deadline) -> None:
        """Wait as long as the server has asked another request of this model to.

        Raises:
            VisionError: `overloaded`, that does not fit.
        """
        left_s = await self._pauses[model].wait_out(until)
        if left_s:
            raise does_not_fit(rate_limited(), left_s, until)

    async def _try(self, question: Question, model: VisionModel, course: _Course, until: Deadline) -> Answer:
        """One request, in a slot of its own, its worst case reserved before and its cost booked after."""
        self._check_trouble(model)
        course.tries += 1
        async with self._limiter.slot(spending_job(), until, again=course.tries > 1):
            self._check_trouble(model)  # another tile may have found out meanwhile
            await self._wait_out_pause(model, until)
            if until.expired:
                raise TimeoutError  # nothing is sent that nobody could wait for
            state = self._models[model]
            input_tokens = worst_input_tokens(question)
            reservation = await self._reserve(state.worst_usd(input_tokens), until)
            answer = Answer()
            try:
                await self._client.ask(question, answer, until, guarded=self._guarded and not course.plain)
            finally:
                self._purse.book(reservation, state.priced(answer.tokens(input_tokens)))
        if answer.begun and course.plain:
            self._guarded = False  # this gateway does not know the field
        return answer

    async def _reserve(self, usd: float, until: Deadline) -> Reservation:
        """The money for a request, once requests under way have left enough of it.

        Raises:
            VisionError: `cap`.
            TimeoutError: others held it until the deadline.
        """
        got = await self._purse.reserve(usd, until)
        if got == "unwritable":
            self._trouble.remember_provider(unwritable(), UNREACHABLE_KEPT_S)
            raise unwritable()
        if got == "cap":
            raise cap_reached(self._cap_usd, self._ledger.today.spent.usd)
        return got

    async def _wait_to_retry(self, answer: Answer, course: _Course, until: Deadline) -> VisionError | None:
        """Wait until the next try; or why there is none."""
        # Without a failure the stream has ended, but the model has not.
        failure = answer.failure or Failure(broken_off(), retry=True, how="broken")
        if failure.plainer and self._guarded and not course.plain:
            course.plain = True
            return None
        how = "broken" if answer.begun else failure.how
        course.failed[how] += 1
        if not failure.retry or course.failed[how] >= retry.MAX_TRIES[how]:
            return failure.error
        wait_s = retry.wait_s(course.tries, failure.asked_s, random.random())  # noqa: S311  (spreads waits, no secret)
        if wait_s + retry.SHORTEST_TRY_S > until.remaining_s():
            return does_not_fit(failure.error, failure.asked_s, until)
        await asyncio.sleep(wait_s)
        return None

    def _ended(self, answer: Answer, question: Question, wanted: Wanted) -> Sight:
        """The model has ended: as asked, by its limit of tokens, or by declining."""
        if answer.stop_reason == "refusal":
            raise VisionError(
                "refused", "the model declined this picture", next_step="the local engine reads this part"
            )
        cut: Cut = "" if answer.stop_reason in ("end_turn", "stop_sequence") else "tokens"
        return self._read(answer, question, wanted, cut)

    def _cut_or(self, answer: Answer, question: Question, wanted: Wanted, cut: Cut, error: VisionError) -> Sight:
        """What a broken-off answer holds, else the error."""
        if answer.pieces:
            sight = self._read(answer, question, wanted, cut)
            if sight.lines or sight.regions:
                return sight
        raise error

    def _read(self, answer: Answer, question: Question, wanted: Wanted, cut: Cut) -> Sight:
        picture = question.picture
        sight = read_answer(answer.text, wanted, width_px=picture.width_px, height_px=picture.height_px, cut=cut)
        if sight.dropped:
            logger.warning("Claude: %d items of an answer made no sense", sight.dropped)
        return sight

    def status(self) -> dict[str, Any]:
        """What get_status and `doctor` tell; reads no disk and asks nobody."""
        trouble = self.trouble
        return {
            "sends_to": self._client.host,
            "models": {model: self._models[model].told(self._trouble.of_model(model)) for model in MODELS},
            "in_flight": self._limiter.in_flight,
            "waiting": self._limiter.waiting,
            "max_in_flight": self._limiter.size,
            "today": self._ledger.today.told(self._cap_usd),
            "trouble": None if trouble is None else trouble.public_text,
        }


def worst_input_tokens(question: Question) -> int:
    """More than the request can be counted as: no tokenizer makes more tokens than bytes."""
    picture = question.picture
    patches = -(-picture.width_px // PATCH_PX) * -(-picture.height_px // PATCH_PX)
    words = sum(len(text.encode("utf-8")) for text in (SYSTEM, question.text, str(question.schema)))
    return round(patches * IMAGE_TOKENS_FACTOR) + words + REQUEST_OVERHEAD_TOKENS


def build_claude(settings: Settings) -> ClaudeVision:
    """The provider for these settings; sends nothing yet.

    Raises:
        WorkerError: the key or the address cannot be one.
    """
    key = settings.anthropic_api_key
    assert key is not None  # choose_vision has looked
    text = checked_key(key, "ANTHROPIC_API_KEY", error=VisionError, meanwhile=MEANWHILE)
    # Never left to the SDK, which would take an empty variable for an address.
    address = settings.anthropic_base_url or DEFAULT_ADDRESS
    address = checked_address(address, "ANTHROPIC_BASE_URL", error=VisionError, meanwhile=MEANWHILE)
    return ClaudeVision(settings, ClaudeClient(text, address))
