"""A recording of hours through transcribe_audio: cut, heard by the scripted endpoint, the worker killed half-way.

    python -m tests.bench.sound.long_file [--hours 3] [--check] [--json]

Every minute holds the same sentences over noise of its own, so that no two pieces are alike. The endpoint takes 2 s for
a piece (95 % below 4.5 s) and answers with what is said there. Half-way the worker and all its children are killed; a
new one goes on with the cursor. In the end every sentence of every minute must have come once, at its time, and every
second of the recording be accounted for; a further call must cost nothing.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import wave
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.bridge.host import process_tree
from tests.bench.claude.command import finish, options, rows_of
from tests.bench.claude.scene import (
    MOST_ERRORS,
    RunningProgram,
    call,
    cpu_s,
    quiet_environment,
    resident_mb,
    worker_program,
)
from tests.fakes.claude_script import REAL
from tests.fakes.speech_script import SpeechScript
from tests.fakes.speech_server import FakeSpeech, KnownSound, speech_server
from tests.fakes.speech_sounds import RATE_HZ, Sound, Spoken, join, mix, noise, said, silence

CALL_LIMIT_S = 27.0
MINUTE_S = 60.0
# From the first quarter of the calls to their end: what is known of three hours is a part of it.
MOST_SERVER_GROWTH_MB = 32.0
MOST_TREE_GROWTH_MB = 96.0
# What makes each minute another; speech lies 40 dB above it.
NOISE_DBFS = -60.0
NEEDLE_BYTES = 64
# Ten minutes.
NEAR_BYTES = 600 * 2 * RATE_HZ
# Times are told in milliseconds.
SLACK_S = 0.002
SENTENCES = (
    "insurance covers accidents at work",
    "the premium may rise every year",
    "read the terms before you sign",
    "ask a person who knows the contract",
    "some illnesses are not covered",
)


@dataclass(frozen=True)
class Account:
    """What a call says of the recording, and the memory right after it."""

    took_s: float
    heard_s: float
    silent_s: float
    unheard_s: float
    failed_s: float
    unreached_s: float
    asked_s: float
    server_mb: float
    tree_mb: float

    @property
    def adds_up(self) -> bool:
        parts_s = self.heard_s + self.silent_s + self.unheard_s + self.failed_s + self.unreached_s
        return abs(parts_s - self.asked_s) <= SLACK_S


@dataclass
class LongFile:
    """All calls for one recording, in order; `told` counts sentences by minute and number."""

    hours: float
    minutes: int = 0
    accounts: list[Account] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    told: Counter[tuple[int, int]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    pieces: set[str] = field(default_factory=set)
    killed_after: int = 0
    requests: int = 0
    refused: int = 0
    unknown: int = 0
    cpu_s: float = 0.0
    again_s: float = 0.0
    again_requests: int = 0

    @property
    def settled(self) -> list[Account]:
        """Calls of the worker that was started last, behind the first quarter of them."""
        late = self.accounts[self.killed_after :]
        return late[len(late) // 4 :]

    def growth_mb(self, part: str) -> float:
        sizes = [getattr(each, part) for each in self.settled]
        return sizes[-1] - sizes[0] if sizes else 0.0

    def shortcomings(self) -> list[str]:
        longest_s = max((each.took_s for each in self.accounts), default=0.0)
        last = self.accounts[-1] if self.accounts else None
        expected = {(minute, number) for minute in range(self.minutes) for number in range(len(SENTENCES))}
        claims = {
            f"a call took {longest_s:.1f} s": longest_s >= CALL_LIMIT_S,
            f"calls that ended in an error: {self.errors}": bool(self.errors),
            "an account that does not add up": not all(each.adds_up for each in self.accounts),
            f"something was not listened to: {last}": last is None
            or last.unheard_s + last.failed_s + last.unreached_s > 0,
            f"{len(expected - set(self.told))} sentences lost": bool(expected - set(self.told)),
            f"{sum(n > 1 for n in self.told.values())} sentences told twice": any(n > 1 for n in self.told.values()),
            f"{len(self.wrong)} texts or times wrong: {self.wrong[:3]}": bool(self.wrong),
            f"{self.refused} requests refused, {self.unknown} of unknown sound": self.refused + self.unknown > 0,
            f"the server grew by {self.growth_mb('server_mb'):.1f} MB": self.growth_mb("server_mb")
            > MOST_SERVER_GROWTH_MB,
            f"all processes grew by {self.growth_mb('tree_mb'):.1f} MB": self.growth_mb("tree_mb")
            > MOST_TREE_GROWTH_MB,
            f"the repeated call asked {self.again_requests} times": self.again_requests > 0,
        }
        return [claim for claim, holds in claims.items() if holds]

    def as_dict(self) -> dict[str, Any]:
        total_s = sum(each.took_s for each in self.accounts)
        last = self.accounts[-1]
        return {
            "hours": self.hours,
            "calls": len(self.accounts),
            "killed_after_call": self.killed_after,
            "longest_call_s": round(max(each.took_s for each in self.accounts), 2),
            "total_s": round(total_s, 1),
            "sound_s_per_s": round(last.asked_s / total_s, 1) if total_s else 0.0,
            "sentences": f"{len(self.told)} of {self.minutes * len(SENTENCES)}",
            "wrong": len(self.wrong),
            "heard_s, silent_s": f"{last.heard_s:.1f}, {last.silent_s:.1f} of {last.asked_s:.1f}",
            "requests": self.requests,
            "cpu_s_a_minute_of_sound": round(self.cpu_s / max(1, self.minutes), 2),
            "server_mb": f"{self.settled[0].server_mb:.0f} to {last.server_mb:.0f}",
            "all_processes_mb": f"{self.settled[0].tree_mb:.0f} to {last.tree_mb:.0f}",
            "again": f"{self.again_s:.1f} s, {self.again_requests} requests",
        }


@dataclass(frozen=True)
class LongSound(KnownSound):
    """Hours of sound in which nothing comes twice: some samples of a piece tell where it is.

    It is looked for near the one before first: to look through all of it would hold up the agent, which is in the same
    process, for seconds.
    """

    near: list[int] = field(default_factory=lambda: [0])

    def find(self, piece: bytes) -> float | None:
        middle = len(piece) // 4 * 2
        needle = piece[middle : middle + NEEDLE_BYTES]
        for start, end in ((max(0, self.near[0] - NEAR_BYTES), self.near[0] + NEAR_BYTES), (0, len(self.samples))):
            at = self.samples.find(needle, start, end) - middle
            if at >= 0 and self.samples[at : at + len(piece)] == piece:
                self.near[0] = at
                return at / 2 / RATE_HZ
        return None


def one_minute() -> Sound:
    """The sentences with quiet between them, 60 s exactly."""
    parts: list[Sound] = [silence(2.0)]
    for number, text in enumerate(SENTENCES):
        parts += [said(text), silence(1.5 if number % 2 else 4.0)]
    sound = join(*parts)
    assert sound.length_s < MINUTE_S
    return join(sound, silence((MINUTE_S * RATE_HZ - len(sound.samples)) / RATE_HZ))


def write_long(path: Path, minute: Sound, minutes: int) -> LongSound:
    """The minute over and over, each time with other noise behind it, as a WAV."""
    samples = bytearray()
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        for number in range(minutes):
            part = mix(minute, noise(MINUTE_S, level_dbfs=NOISE_DBFS, seed=number)).samples.astype("<i2").tobytes()
            file.writeframes(part)
            samples += part
    spoken = [
        Spoken(one.start_s + number * MINUTE_S, one.end_s + number * MINUTE_S, one.text)
        for number in range(minutes)
        for one in minute.spoken
    ]
    return LongSound("long", bytes(samples), tuple(spoken))


def take_in(found: LongFile, minute: Sound, facts: dict[str, Any]) -> None:
    """Each told sentence is looked for where it was said: in which minute, and when in it."""
    for segment in facts["segments"]:
        number = int((segment["start_s"] + SLACK_S) // MINUTE_S)
        truth = {one.text: (index, one) for index, one in enumerate(minute.spoken)}
        if segment["text"] not in truth:
            found.wrong.append(segment["text"])
            continue
        index, one = truth[segment["text"]]
        off_s = abs(segment["start_s"] - number * MINUTE_S - one.start_s)
        if off_s > SLACK_S:
            found.wrong.append(f"{segment['text']} is {off_s:.3f} s off in minute {number}")
        found.told[number, index] += 1


async def follow(
    worker: RunningProgram, found: LongFile, minute: Sound, source: str, cursor: str, *, until: float
) -> str:
    """Calls up to the end of the cursor, or until this share of the recording was reached; returns the cursor."""
    while True:
        called = await call(worker.client, "transcribe_audio", source=source, **({"cursor": cursor} if cursor else {}))
        if called.error:
            found.errors.append(called.error)
            if len(found.errors) > MOST_ERRORS:
                return ""
            continue
        take_in(found, minute, called.facts)
        coverage = called.facts["coverage"]
        seconds = {name: coverage[name] for name in Account.__dataclass_fields__ if name in coverage}
        tree = process_tree(worker.pid)
        account = Account(
            took_s=called.took_s, server_mb=resident_mb([worker.pid]), tree_mb=resident_mb(tree), **seconds
        )
        found.accounts.append(account)
        print(
            f"call {len(found.accounts)}: {account.took_s:.1f} s, {account.unreached_s:.0f} s unreached, "
            f"{account.server_mb:.0f} and {account.tree_mb:.0f} MB",
            file=sys.stderr,
        )
        cursor = called.facts.get("cursor", "")
        if not cursor or account.unreached_s <= (1 - until) * account.asked_s:
            return cursor


async def measure(hours: float, scratch: Path) -> LongFile:
    found, minute = LongFile(hours, minutes=round(hours * 60)), one_minute()
    known = write_long(scratch / "long.wav", minute, found.minutes)
    with speech_server([known], SpeechScript(latency=REAL)) as fake:
        settings = {**fake.settings(), "segmenter": "off", "speech_daily_cap_usd": 100}
        cursor = await _first_half(found, minute, scratch, settings)
        async with worker_program(scratch, **settings) as worker:
            source = await worker.client.upload(scratch / "long.wav")
            await follow(worker, found, minute, source, cursor, until=2.0)
            found.cpu_s += cpu_s(process_tree(worker.pid))
            _take_record(found, fake)
            before = len(fake.requests)
            again = LongFile(hours)
            await follow(worker, again, minute, source, "", until=2.0)
            found.again_s = sum(each.took_s for each in again.accounts)
            found.again_requests = len(fake.requests) - before
    return found


async def _first_half(found: LongFile, minute: Sound, scratch: Path, settings: dict[str, Any]) -> str:
    """Until the worker and its children are killed."""
    async with worker_program(scratch, **settings) as worker:
        source = await worker.client.upload(scratch / "long.wav")
        cursor = await follow(worker, found, minute, source, "", until=0.5)
        found.killed_after = len(found.accounts)
        if not cursor:
            found.errors.append("all of it was heard before the worker could be killed: give more --hours")
        found.cpu_s += cpu_s(process_tree(worker.pid))
        for pid in process_tree(worker.pid):
            os.kill(pid, signal.SIGKILL)
        return cursor


def _take_record(found: LongFile, fake: FakeSpeech) -> None:
    found.requests, found.refused, found.unknown = len(fake.requests), len(fake.refused), fake.unknown


def main() -> int:
    parser = options("long_file", "sound")
    parser.add_argument("--hours", type=float, default=3.0)
    arguments = parser.parse_args()
    quiet_environment()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(arguments.hours, Path(folder)))
    rows = found.as_dict()
    return finish(
        arguments, rows | {"all": [asdict(each) for each in found.accounts]}, rows_of(rows), found.shortcomings()
    )


if __name__ == "__main__":
    sys.exit(main())
