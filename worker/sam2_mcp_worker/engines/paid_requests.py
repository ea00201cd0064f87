"""What is true of all requests to a provider that costs money: one limiter, one ledger, retries, pauses and troubles.

Owns when a request is sent, and whether again. Refuses to know what is asked: the caller hands in the sending.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines import retry
from sam2_mcp_worker.engines.cost_ledger import CostLedger, Reservation
from sam2_mcp_worker.engines.provider_errors import Error, Failure, does_not_fit
from sam2_mcp_worker.engines.provider_trouble import UNREACHABLE_KEPT_S, TroubleMemory
from sam2_mcp_worker.engines.purse import Purse
from sam2_mcp_worker.engines.rate_pause import RatePause
from sam2_mcp_worker.engines.request_limiter import RequestLimiter
from sam2_mcp_worker.spending import Usage

Value = TypeVar("Value")


@dataclass(frozen=True)  # with slots Python 3.11 cannot call it by the name of a type it is made for
class Outcome(Generic[Value, Error]):
    """What came of a request: a value, a failure, or neither where the deadline came first.

    `tokens` are what the provider says it has counted, 0 where it says nothing.
    """

    value: Value | None = None
    failure: Failure[Error] | None = None
    tokens: int = 0

    @property
    def paid(self) -> bool:
        """Whether the provider may ask money for it: not for what it declined or never got."""
        return self.failure is None or self.failure.how == "broken"


@dataclass(frozen=True)
class Wordings(Generic[Error]):
    """What the provider's errors are called. `cap` takes the cap and what is spent, US dollars."""

    cap: Callable[[float, float], Error]
    unwritable: Callable[[], Error]
    no_time: Callable[[], Error]
    rate_limited: Callable[[], Error]


@dataclass(slots=True)
class _Course:
    """How one request has gone so far. `plain` leaves out what older gateways do not know."""

    plain: bool
    tries: int = 0
    failed: Counter[retry.How] = field(default_factory=Counter)


class PaidRequests(Generic[Error]):
    """The requests of one process to one model of a provider.

    `plain` says that the gateway has shown not to know newer fields: requests leave them out from then on. The cheapest
    request there is tells whether the day's money allows any.
    """

    def __init__(
        self,
        name: str,
        model: str,
        words: Wordings[Error],
        *,
        ledger: Path,
        cap_usd: float,
        cheapest_usd: float,
        in_flight: int,
    ) -> None:
        self._model = model
        self._words = words
        self._cap_usd = cap_usd
        self._cheapest_usd = cheapest_usd
        self.limiter = RequestLimiter(in_flight)
        self.ledger = CostLedger(ledger, cap_usd)
        self.plain = False
        self._purse = Purse(self.ledger)
        self._trouble: TroubleMemory[Error] = TroubleMemory(name)
        self._pause = RatePause()
        self._broken_in_a_row = 0

    def check_ledger(self) -> None:
        """Look up what today has cost so far."""
        if self.ledger.refresh():
            self._trouble.remember_provider(self._words.unwritable(), UNREACHABLE_KEPT_S)

    def remember(self, error: Error) -> None:
        """Keep what other requests would meet too."""
        self._trouble.remember(self._model, error)

    @property
    def trouble(self) -> Error | None:
        """Why asking is useless now, None when it is not."""
        known = self._trouble.of_provider() or self._trouble.of_model(self._model)
        if known is not None:
            return known
        if self.ledger.fits(self._cheapest_usd):
            return None
        return self._words.cap(self._cap_usd, self.ledger.today.spent.usd)

    async def ask(
        self,
        send: Callable[[bool], Awaitable[Outcome[Value, Error]]],
        price: Callable[[Outcome[Value, Error]], Usage],
        *,
        worst_usd: float,
        job: str,
        until: Deadline,
    ) -> Value:
        """What `send(plain)` brings, with retries that fit before the deadline.

        `worst_usd` is reserved before each try; `price` says what a try that may be paid has cost.

        Raises:
            Error: why there is nothing.
        """
        course = _Course(self.plain)
        while True:
            try:
                outcome = await self._try(send, price, worst_usd, job, course, until)
            except TimeoutError as error:  # no turn came
                raise self._words.no_time() from error
            if outcome.value is not None:
                self._broken_in_a_row = 0
                self.plain = course.plain
                return outcome.value
            if outcome.failure is None:
                raise self._words.no_time()
            reason = await self._wait_to_retry(outcome.failure, course, until)
            if reason is not None:
                if self._concerns_others(outcome.failure):
                    self.remember(reason)
                raise reason

    def _concerns_others(self, failure: Failure[Error]) -> bool:
        """One request at which the connection breaks off says nothing of the others; two in a row do."""
        if failure.how != "broken" or failure.error.kind != "unreachable":
            return True
        self._broken_in_a_row += 1
        return self._broken_in_a_row > 1

    async def _try(
        self,
        send: Callable[[bool], Awaitable[Outcome[Value, Error]]],
        price: Callable[[Outcome[Value, Error]], Usage],
        worst_usd: float,
        job: str,
        course: _Course,
        until: Deadline,
    ) -> Outcome[Value, Error]:
        """One request, in a slot of its own, its price reserved before and booked after.

        Raises:
            Error: found out by another request, or the cap.
            TimeoutError: no turn came.
        """
        self._check_trouble()
        course.tries += 1
        async with self.limiter.slot(job, until, again=course.tries > 1):
            self._check_trouble()  # another request may have found out meanwhile
            left_s = await self._pause.wait_out(until)
            if left_s:
                raise does_not_fit(self._words.rate_limited(), left_s, until)
            if until.expired:
                raise TimeoutError  # nothing is sent that nobody could wait for
            reservation = await self._reserve(worst_usd, until)
            outcome: Outcome[Value, Error] = Outcome()
            try:
                outcome = await send(course.plain)
            finally:
                self._purse.book(reservation, price(outcome) if outcome.paid else Usage(requests=1))
        return outcome

    def _check_trouble(self) -> None:
        error = self.trouble
        if error is not None:
            raise error.with_traceback(None)  # it is raised again and again, and must not collect all those ways

    async def _reserve(self, usd: float, until: Deadline) -> Reservation:
        got = await self._purse.reserve(usd, until)
        if got == "unwritable":
            self._trouble.remember_provider(self._words.unwritable(), UNREACHABLE_KEPT_S)
            raise self._words.unwritable()
        if got == "cap":
            raise self._words.cap(self._cap_usd, self.ledger.today.spent.usd)
        return got

    async def _wait_to_retry(self, failure: Failure[Error], course: _Course, until: Deadline) -> Error | None:
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
