"""One bridge for the length of a soak: what is done to it, in a random order, and whether each answer was right."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.bench.soak.measure import Sample, sample
from tests.bench.soak.speakers import Arguments, Pipes, Speaker
from tests.bench.soak.upstream import SoakUpstream
from tests.e2e.faults.case import IMPATIENT_S, Case, Expect, answered, either
from tests.e2e.faults.host_lines import CASES as HOST_CASES
from tests.e2e.faults.upstream_connection import CASES as CONNECTION_CASES
from tests.e2e.faults.upstream_http import CASES as HTTP_CASES
from tests.e2e.faults.upstream_messages import CASES as MESSAGE_CASES
from tests.e2e.faults.upstream_text import CASES as TEXT_CASES

# Stalls take this long each; a call on a busy machine must not.
DEADLINE_S = 4.0
# Between two looks at a bridge that has nothing to do.
QUIET_EVERY_S = 5.0
# The main one, the reader, and those that wait for another call (threads.MOST_IDLE, which is no hard limit).
QUIET_THREADS = 8
# For threads of calls that were given up to end.
SETTLE_S = 8.0
LARGEST_ANSWER = 3_000_000
LARGEST_ARGUMENT = 1_000_000

SOAKED = [
    case for case in [*CONNECTION_CASES, *HTTP_CASES, *TEXT_CASES, *MESSAGE_CASES] if not case.heavy and not case.others
]
QUICK = {case.name: case for case in SOAKED if case.deadline_s > IMPATIENT_S}
SLOW = {case.name: case for case in SOAKED if case.deadline_s == IMPATIENT_S}
# With a session id, statuses mean something else: only what concerns the connection stays the same.
QUICK_IN_SESSION = {case.name: case for case in CONNECTION_CASES if case.name in QUICK}
LINES = [case for case in HOST_CASES if not case.fresh and isinstance(case.data, bytes)]

IN_A_RESTART = either(
    "connection_broken", "no_answer", "unreachable", "session_lost", "not_started", "deadline", "timeout"
)


@dataclass
class Record:
    """What happened to one bridge."""

    done: Counter[str] = field(default_factory=Counter)
    cases: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    quiet: list[Sample] = field(default_factory=list)


class Actor(threading.Thread):
    """Drives one session until `until_s`.

    Args:
        rate_per_s: how many actions at most; the machine has other work.
    """

    def __init__(
        self, speaker: Speaker, upstream: SoakUpstream, rng: random.Random, *, stateful: bool, rate_per_s: float
    ) -> None:
        super().__init__(daemon=True)
        self.speaker = speaker
        self.record = Record()
        self._upstream = upstream
        self._rng = rng
        self._pause_s = 1 / rate_per_s
        self._quick = QUICK_IN_SESSION if stateful else QUICK
        self.until_s = 0.0
        kinds: list[tuple[Callable[[], None], int]] = [
            (self._good_call, 300),
            (self._fault, 300),
            (self._burst, 60),
            (self._large_answer, 12),
            (self._large_argument, 12),
            (self._restart, 2),
            (self._forget_session, 20 if stateful else 0),
            (self._stall, 3),
        ]
        if isinstance(speaker, Pipes):
            self._pipes = speaker
            kinds += [(self._lines, 100), (self._cancel, 30)]
        self._kinds, self._weights = zip(*kinds, strict=True)

    def run(self) -> None:
        try:
            self._look()
            while time.monotonic() < self.until_s:
                self._act_until(min(self.until_s, time.monotonic() + QUIET_EVERY_S))
                self._look()
        except BaseException as error:
            self.record.wrong.append(f"the session ended: {type(error).__name__}: {error}"[:2000])

    def _act_until(self, until_s: float) -> None:
        while time.monotonic() < until_s:
            (act,) = self._rng.choices(self._kinds, self._weights)
            self.record.done[act.__name__.strip("_")] += 1
            act()
            time.sleep(self._pause_s)

    def _look(self) -> None:
        """A sample of a bridge that has nothing to do: no thread of an earlier call is left, no connection open."""
        self._check(answered(), {})
        if isinstance(self.speaker, Pipes) and not self._pipes.is_quiet():
            self.record.wrong.append("a line that nobody waited for")
        now = time.monotonic
        until_s = now() + SETTLE_S
        seen = sample(self.speaker.pid, now())
        least = min((each.descriptors for each in self.record.quiet), default=seen.descriptors)
        while (seen.threads > QUIET_THREADS or seen.descriptors > least) and now() < until_s:
            time.sleep(0.05)
            seen = sample(self.speaker.pid, now())
        self.record.quiet.append(seen)

    def _check(self, expect: Expect, arguments: Arguments) -> None:
        self._check_all([(expect, arguments)])

    def _check_all(self, asked: list[tuple[Expect, Arguments]]) -> None:
        results = self.speaker.calls(*(arguments for _, arguments in asked))
        for (expect, arguments), (tag, result) in zip(asked, results, strict=True):
            self.record.done["calls"] += 1
            self.record.cases[arguments.get("case", "")] += 1
            if (mistake := expect.mistake(result, tag)) is not None:
                self.record.wrong.append(f"{arguments.get('case', 'good call')}: {mistake}")
            if result.get("isError"):
                self.record.failures[result["content"][0]["text"].partition("]")[0][1:40]] += 1

    def _good_call(self) -> None:
        self._check(answered(), {"size": 0})

    def _large_answer(self) -> None:
        size = self._rng.randrange(LARGEST_ANSWER)
        self._check(answered(lambda tag: tag + "x" * size), {"size": size})

    def _large_argument(self) -> None:
        self._check(answered(), {"ballast": "y" * self._rng.randrange(LARGEST_ARGUMENT)})

    def _fault(self) -> None:
        self._strike(self._rng.choice(list(self._quick.values())))

    def _stall(self) -> None:
        self._strike(self._rng.choice(list(SLOW.values())))

    def _strike(self, case: Case) -> None:
        self._check(case.expect, {"case": case.name})

    def _burst(self) -> None:
        cases = self._rng.choices(list(self._quick.values()), k=self._rng.randint(2, 6))
        good: list[tuple[Expect, Arguments]] = [(answered(), {}) for _ in range(2)]
        asked = [*good, *((case.expect, {"case": case.name}) for case in cases)]
        self._rng.shuffle(asked)
        self._check_all(asked)

    def _restart(self) -> None:
        """While calls are under way; whatever becomes of them, the next one is right."""
        restart = threading.Timer(self._rng.random() * 0.02, self._upstream.restart)
        restart.start()
        self._check_all([(IN_A_RESTART, {}) for _ in range(3)])
        restart.join()
        self._check(answered(), {})

    def _forget_session(self) -> None:
        self._upstream.forget_session()
        self._check(answered(), {})

    def _lines(self) -> None:
        self.record.wrong += self._pipes.lines(self._rng.choice(LINES))

    def _cancel(self) -> None:
        self._pipes.cancelled_call()
        self._check(answered(), {})
