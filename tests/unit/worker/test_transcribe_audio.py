"""A transcription over calls that end too early, restarts, a killed scan child and several callers: no word is lost,
none comes twice, nothing is paid for twice."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.fakes.scripted_ears import ScriptedEars
from tests.fakes.speech_sounds import join, said, silence, write_sound

from sam2_mcp_worker.deadline import Deadline, deadline_scope
from sam2_mcp_worker.engines.request_limiter import RequestLimiter
from sam2_mcp_worker.engines.speech_ports import AudioPiece, Hearing, SpokenSegment
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.media.decoder import DECODER_MEMORY_LIMIT_BYTES, SCAN_MODULE
from sam2_mcp_worker.pipelines.transcribe_audio import Request, Transcription, transcribe_audio
from sam2_mcp_worker.pipelines.transcript import total_s
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.tools.transcribe_audio import _model

# Each is a piece of its own: the silence between them is longer than what a piece may hold of it.
SENTENCES = 4
WHOLE_CALL_S = 30.0


@dataclass
class Doorkeeper(ScriptedEars):
    """Hears the number of pieces that it is allowed to, and then waits until it may hear more."""

    allowed: int = 1000
    seen: asyncio.Event | None = None

    async def transcribe(self, piece: AudioPiece, *, language: str | None, job: str, deadline: Deadline) -> Hearing:
        if self.asked >= self.allowed:
            if self.seen is not None:
                self.seen.set()
            await asyncio.Event().wait()
        self.asked += 1
        return Hearing((SpokenSegment(0.0, piece.duration_s, f"{piece.duration_s:.4f} s of speech"),))


@pytest.fixture(scope="module")
async def scanner() -> AsyncIterator[ChildPool]:
    async with ChildPool("scan", SCAN_MODULE, size=1, config={}, memory_limit_bytes=DECODER_MEMORY_LIMIT_BYTES) as pool:
        yield pool


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two stretches of a minute with two sentences each, which differ in length."""
    sound = silence(0.5)
    for number in range(SENTENCES):
        sound = join(sound, said("the premium may rise " + "and rise " * number), silence(30.0))
    return write_sound(tmp_path_factory.mktemp("recording") / "talk.wav", sound)


def worker(folder: Path, scanner: ChildPool, ears: ScriptedEars) -> Services:
    """The services of a worker that was just started on this data folder."""
    services = Services(Settings(data_dir=folder / "data", segmenter="off", allowed_roots=(str(folder.parent),)))
    services.work_root.mkdir(parents=True, exist_ok=True)
    services.scanner = scanner
    services.transcribers = (ears,)
    services.hearing_turns = {ears.identity: RequestLimiter(ears.pieces_in_flight)}
    return services


async def listen(
    services: Services, recording: Path, cursor: str = "", *, budget_s: float = WHOLE_CALL_S
) -> Transcription:
    services.sources._roots = (recording.parent,)
    with deadline_scope(Deadline.after(budget_s)):
        return await transcribe_audio(services, Request(str(recording), cursor=cursor))


def accounted(one: Transcription) -> bool:
    return total_s(one.transcript.spans) == round(one.transcript.end_s - one.transcript.start_s, 3)


async def test_calls_that_end_early_and_a_restart_deliver_every_word_once_and_ask_for_none_twice(
    tmp_path: Path, scanner: ChildPool, recording: Path
) -> None:
    first = Doorkeeper("ears", [], allowed=2, seen=asyncio.Event())
    services = worker(tmp_path, scanner, first)
    begun = asyncio.ensure_future(listen(services, recording, budget_s=WHOLE_CALL_S))
    assert first.seen is not None
    await first.seen.wait()  # two pieces are heard, the third waits
    early = await listen(services, recording, budget_s=0.05)
    assert early.cursor is not None and early.transcript.of("unreached") and accounted(early)
    begun.cancel()
    await services.jobs.close()
    second = Doorkeeper("ears", [])
    late = await listen(worker(tmp_path, scanner, second), recording, early.cursor)
    texts = [said.text for said in (*early.segments, *late.segments)]
    assert len(texts) == len(set(texts)) == SENTENCES
    assert late.cursor is None and not late.transcript.of("unreached") and accounted(late)
    assert first.asked + second.asked == SENTENCES
    assert [said.start_s for said in late.transcript.said] == sorted(said.start_s for said in late.transcript.said)


async def test_callers_of_one_recording_share_the_work(tmp_path: Path, scanner: ChildPool, recording: Path) -> None:
    ears = Doorkeeper("ears", [])
    services = worker(tmp_path, scanner, ears)
    both = await asyncio.gather(listen(services, recording), listen(services, recording))
    assert both[0].segments == both[1].segments and len(both[0].segments) == SENTENCES
    assert ears.asked == SENTENCES
    assert both[0].files == both[1].files
    await services.jobs.close()


async def test_a_recording_that_nobody_wants_any_more_is_not_heard_on(
    tmp_path: Path, scanner: ChildPool, recording: Path
) -> None:
    ears = Doorkeeper("ears", [], allowed=1, seen=asyncio.Event())
    services = worker(tmp_path, scanner, ears)
    call = asyncio.ensure_future(listen(services, recording))
    assert ears.seen is not None
    await ears.seen.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert services.jobs.running == 0
    assert ears.asked == 1


async def test_a_stretch_whose_scan_child_is_killed_is_named_as_failed_and_heard_by_the_next_call(
    tmp_path: Path, scanner: ChildPool, recording: Path
) -> None:
    ears = Doorkeeper("ears", [], pieces_in_flight=1)
    services = worker(tmp_path, scanner, ears)
    await listen(services, recording, budget_s=0)  # what the file is, is known: the next task is a stretch
    await services.jobs.close()
    victim = KilledOnce(scanner)
    services.scanner = victim  # type: ignore[assignment]
    hurt = await listen(services, recording)
    assert victim.killed
    assert [span.reason.split(":")[0] for span in hurt.transcript.of("failed")] == ["decoder_crashed"]
    assert 0 < len(hurt.segments) < SENTENCES and accounted(hurt)
    whole = await listen(services, recording)
    assert len(whole.segments) == SENTENCES and not whole.transcript.of("failed")
    assert ears.asked == SENTENCES
    await services.jobs.close()


class KilledOnce:
    """The scan pool, whose child is killed while it works on the first stretch that it is given."""

    def __init__(self, pool: ChildPool) -> None:
        self._pool = pool
        self.killed = False

    async def run(self, task: str, params: dict[str, object], *, timeout_s: float, job: str) -> dict[str, object]:
        running = asyncio.ensure_future(self._pool.run(task, params, timeout_s=timeout_s, job=job))
        if not self.killed:
            self.killed = True
            while self._pool.stats().busy == 0:
                await asyncio.sleep(0)
            pid = self._pool.stats().children[0].pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
        return await running


async def test_a_small_result_brings_the_words_in_parts(tmp_path: Path, scanner: ChildPool, recording: Path) -> None:
    ears = Doorkeeper("ears", [])
    services = worker(tmp_path, scanner, ears)
    services.settings = services.settings.model_copy(update={"result_max_chars": 3000 + 150})
    parts = [await listen(services, recording)]
    while parts[-1].cursor is not None:
        parts.append(await listen(services, recording, parts[-1].cursor))
    assert [len(part.segments) for part in parts] == [1] * SENTENCES
    assert [replace(said) for part in parts for said in part.segments] == list(parts[-1].transcript.said)
    await services.jobs.close()


async def test_files_keep_their_addresses_are_made_again_when_swept_and_cost_the_result_nothing_on_a_full_disk(
    tmp_path: Path, scanner: ChildPool, recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = worker(tmp_path, scanner, Doorkeeper("ears", []))
    first = await listen(services, recording)
    assert sorted(file.name.rpartition(".")[2] for file in first.files) == ["json", "srt", "txt", "vtt"]
    services.artifacts.discard(first.files[0].handle)
    again = await listen(services, recording)
    assert again.files == first.files
    assert all(services.artifacts.holds(file.handle) for file in again.files)
    services.artifacts.discard(first.files[0].handle)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(services.artifacts, "put", full)
    # Those that are there still tell the truth of when they were written.
    assert [file.name for file in (await listen(services, recording)).files] == [f.name for f in first.files[1:]]
    await services.jobs.close()


async def test_words_without_a_length_at_the_beginning_are_told(
    tmp_path: Path, scanner: ChildPool, recording: Path
) -> None:
    ears = ScriptedEars("instant", [Hearing((SpokenSegment(0.0, 0.0, "yes"),))])
    services = worker(tmp_path, scanner, ears)
    services.sources._roots = (recording.parent,)
    first = await listen(services, recording)
    assert len(first.segments) == SENTENCES
    at_s = first.segments[1].start_s
    before, after = Request(str(recording), end_s=at_s), Request(str(recording), start_s=at_s)
    with deadline_scope(Deadline.after(WHOLE_CALL_S)):
        assert (await transcribe_audio(services, before)).segments == first.segments[:1]
        assert (await transcribe_audio(services, after)).segments == first.segments[1:]
    await services.jobs.close()


async def test_what_low_quality_means_is_said_with_the_words(
    tmp_path: Path, scanner: ChildPool, recording: Path
) -> None:
    services = worker(tmp_path, scanner, Doorkeeper("local", [], quality="low"))
    told = _model(await listen(services, recording))
    assert told.quality == "low" and told.notes is not None and "not for verdicts" in told.notes[0]
    assert told.speech == "found" and told.engine == "local"
    await services.jobs.close()
