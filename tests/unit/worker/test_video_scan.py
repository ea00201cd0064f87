"""Samples of videos: the right frames at the right times, the same however the scan was cut, and damage that is told.

Most run the task in this process; what is about processes runs in a real scan child.
"""

from __future__ import annotations

import bisect
import gc
import os
import signal
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.coded_videos import CODED, MS
from tests.fakes.video_tasks import InThisProcess
from tests.fakes.videos import (
    Clip,
    even_times,
    index_clip,
    index_picture,
    read_index,
    scratched,
    sound_file,
    write_clip,
)

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media import segment_scan, video_scan, video_scan_child
from sam2_mcp_worker.media.decoder import DECODER_MEMORY_LIMIT_BYTES, SCAN_MODULE
from sam2_mcp_worker.media.video import VideoFacts, probe_video
from sam2_mcp_worker.media.video_scan import MOST_CUTS, Sample, ScanPlan, SegmentEnd, scan_segment

SIZE = (160, 96)


class Scan:
    """Samples videos and looks at what came."""

    def __init__(self, scanner: TaskRunner, folder: Path) -> None:
        self.scanner = scanner
        self.folder = folder
        self.out = folder / "frames"
        self.out.mkdir()

    async def facts(self, path: Path) -> VideoFacts:
        return await probe_video(InThisProcess(), path, max_video_s=9999, timeout_s=100, job="t")

    async def segment(
        self, path: Path, plan: ScanPlan, first: int = 0, count: int | None = None, facts: VideoFacts | None = None
    ) -> tuple[list[tuple[Sample, int | None]], SegmentEnd]:
        """The samples of a segment with the number that each shows, and its end."""
        seen: list[tuple[Sample, int | None]] = []
        facts = facts or await self.facts(path)
        count = plan.grid_count if count is None else count
        found = scan_segment(self.scanner, path, facts, plan, first, count, self.out, timeout_s=100, job="t")
        async for one in found:
            if isinstance(one, SegmentEnd):
                return seen, one
            number = None
            if one.pixels is not None:
                number = read_index(one.pixels.map_rgb())
                one.pixels.path.unlink()
            elif one.same_as is not None:
                number = seen[one.same_as][1]
            seen.append((one, number))
        raise AssertionError("a scan ends with its SegmentEnd")


@pytest.fixture
def scan(tmp_path: Path) -> Iterator[Scan]:
    yield Scan(InThisProcess(), tmp_path)
    video_scan_child.close_files()


def plain(samples: list[tuple[Sample, int | None]]) -> list[tuple[Any, ...]]:
    """What must not depend on how the scan was cut."""
    return [(replace(sample, pixels=None), sample.pixels is None, number) for sample, number in samples]


def check_truth(clip: Clip, plan: ScanPlan, samples: list[tuple[Sample, int | None]]) -> None:
    """Every sample shows the frame whose time it states, and every time of the grid has its frame."""
    for sample, number in samples:
        assert number is not None
        assert sample.time_s == pytest.approx(clip.times_s[number], abs=6e-4)
        if sample.until_s is not None and number + 1 < len(clip.times_s):
            assert sample.until_s == pytest.approx(clip.times_s[number + 1], abs=6e-4)
    numbers = {number for _, number in samples}
    for time_s in map(plan.grid_s, range(plan.grid_count)):
        # Some containers round times to milliseconds.
        assert numbers & {bisect.bisect_right(clip.times_s, time_s + slip_s) - 1 for slip_s in (-5e-4, 1e-6, 5e-4)}
    assert [sample.time_s for sample, _ in samples] == sorted({sample.time_s for sample, _ in samples})


@pytest.mark.parametrize("kind", CODED)
async def test_every_sample_is_the_frame_whose_time_it_states(scan: Scan, kind: str) -> None:
    clip = CODED[kind](scan.folder)
    facts = await scan.facts(clip.path)
    for cuts in (True, False):
        plan = ScanPlan(0.0, facts.duration_s, facts.duration_s / 12.3, cuts)
        samples, end = await scan.segment(clip.path, plan, facts=facts)
        check_truth(clip, plan, samples)
        assert end.failed_s == ()
        assert cuts or {sample.kind for sample, _ in samples} == {"grid"}


@pytest.mark.parametrize("kind", ["MP4 of uneven rate", "MPEG-TS that starts at 1.5 s", "one keyframe for all", "GIF"])
async def test_a_segment_is_the_same_wherever_decoding_began(scan: Scan, kind: str) -> None:
    clip = CODED[kind](scan.folder)
    facts = await scan.facts(clip.path)
    plan = ScanPlan(0.1, facts.duration_s, 0.17, cuts=True)
    firsts = range(0, plan.grid_count, 4)
    counts = [min(4, plan.grid_count - first) for first in firsts]
    in_order, alone = [], []
    for first, count in zip(firsts, counts, strict=True):
        samples, end = await scan.segment(clip.path, plan, first, count, facts)
        in_order.append((plain(samples), end))
    for first, count in reversed(list(zip(firsts, counts, strict=True))):
        video_scan_child.close_files()
        samples, end = await scan.segment(clip.path, plan, first, count, facts)
        alone.insert(0, (plain(samples), end))
    assert in_order == alone
    assert sum(len(end.cuts_s) for _, end in alone) > 3


@pytest.mark.parametrize("forget", [False, True])
async def test_steps_change_nothing_whether_the_child_remembers_or_not(
    scan: Scan, monkeypatch: pytest.MonkeyPatch, forget: bool
) -> None:
    clip = CODED["MP4 of uneven rate"](scan.folder)
    facts = await scan.facts(clip.path)
    plan = ScanPlan(0.0, facts.duration_s, 0.3, cuts=True)
    whole = await scan.segment(clip.path, plan, facts=facts)
    steps = 0
    run = scan.scanner.run

    async def forgetful(task: str, params: dict[str, Any], **more: Any) -> dict[str, Any]:
        nonlocal steps
        steps += 1
        if forget:
            video_scan_child.close_files()
        return await run(task, params, **more)

    monkeypatch.setattr(scan.scanner, "run", forgetful)
    monkeypatch.setattr(video_scan, "STEP_BYTES", 3 * SIZE[0] * SIZE[1] * 2)
    in_steps = await scan.segment(clip.path, plan, facts=facts)
    assert (plain(in_steps[0]), in_steps[1]) == (plain(whole[0]), whole[1])
    assert steps > len(whole[0]) / 2
    monkeypatch.setattr(video_scan, "STEP_BUDGET_S", 0.0)
    if not forget:
        in_frames = await scan.segment(clip.path, plan, facts=facts)
        assert plain(in_frames[0]) == plain(whole[0])
        assert steps > 60


async def test_frames_before_zero_are_not_shown_and_the_clock_begins_with_the_first_that_is(scan: Scan) -> None:
    options = {"avoid_negative_ts": "disabled"}
    clip = index_clip(scan.folder / "a.mp4", start_s=-0.5, container_options=options)
    samples, _ = await scan.segment(clip.path, ScanPlan(0.0, 1.5, 0.5, cuts=False))
    assert [(sample.time_s, number) for sample, number in samples] == [(0.0, 12), (0.5, 24), (1.0, 36)]


def scenes(path: Path, lengths: list[int], **more: Any) -> Clip:
    """A film of scenes of so many frames each, 24 a second, in which a small square moves."""
    pictures = []
    for number, length in enumerate(lengths):
        rng = np.random.default_rng(number)
        ground = np.kron(rng.integers(20, 230, (6, 10)), np.ones((16, 16))).astype(np.uint8)
        for index in range(length):
            picture = np.repeat(ground[:, :, None], 3, axis=2)
            picture[40:56, 8 + 2 * index % 120 : 24 + 2 * index % 120] = (200, 40, 40)
            pictures.append(picture)
    return write_clip(path, pictures, even_times(len(pictures), 24), options={"g": "48"}, **more)


async def test_the_frames_right_before_and_after_a_cut_are_samples(scan: Scan) -> None:
    clip = scenes(scan.folder / "a.mp4", [30, 41, 24])
    samples, end = await scan.segment(clip.path, ScanPlan(0.0, 95 / 24, 0.5, cuts=True))
    around = [(round(sample.time_s * 24), sample.kind) for sample, _ in samples if sample.kind != "grid"]
    assert around == [(29, "before_cut"), (30, "after_cut"), (70, "before_cut"), (71, "after_cut")]
    assert end.cuts_s == pytest.approx([30 / 24, 71 / 24], abs=1e-5)
    assert len(samples) == 8 + 4


async def test_a_cut_right_at_the_border_belongs_to_the_segment_that_it_begins(scan: Scan) -> None:
    clip = scenes(scan.folder / "a.mp4", [24, 24])
    plan = ScanPlan(0.0, 2.0, 0.5, cuts=True)
    before, first_end = await scan.segment(clip.path, plan, 0, 2)
    after, second_end = await scan.segment(clip.path, plan, 2, 2)
    assert [sample.kind for sample, _ in before] == ["grid", "grid"]
    assert (first_end.cuts_s, second_end.cuts_s) == ((), (1.0,))
    assert [(sample.kind, round(sample.time_s * 24)) for sample, _ in after] == [
        ("before_cut", 23),
        ("after_cut", 24),
        ("grid", 36),
    ]


async def test_too_many_cuts_are_counted(scan: Scan) -> None:
    clip = scenes(scan.folder / "a.mp4", [2] * 20)
    samples, end = await scan.segment(clip.path, ScanPlan(0.0, 40 / 24, 0.5, cuts=True))
    assert len(end.cuts_s) == MOST_CUTS
    assert end.cuts_left_out == 19 - MOST_CUTS
    assert len(samples) <= 2 * MOST_CUTS + 4


async def test_frames_that_look_the_same_are_written_once(scan: Scan) -> None:
    clip = write_clip(
        scan.folder / "a.mp4",
        [index_picture(5 if 48 <= index < 72 else 3, SIZE) for index in range(96)],
        even_times(96, 24),
        options={"g": "12"},
    )
    samples, _ = await scan.segment(clip.path, ScanPlan(0.0, 4.0, 0.5, cuts=False))
    assert [number for _, number in samples] == [3, 3, 3, 3, 5, 5, 3, 3]
    # What is seen again after something else is known again; the first sample of every segment is read.
    assert [sample.same_as for sample, _ in samples] == [None, 0, 0, 0, None, 4, 0, 0]
    later, _ = await scan.segment(clip.path, ScanPlan(0.0, 4.0, 0.5, cuts=False), 1, 2)
    assert [sample.same_as for sample, _ in later] == [None, 0]


def noisy_clip(path: Path, **more: Any) -> Clip:
    """A clip with enough bytes a frame that a scratch hits some of them and not their container."""
    grain = np.random.default_rng(5).integers(-20, 20, size=(60, 144, 240, 3))
    pictures = [(index_picture(i, (240, 144)).astype(int) + grain[i]).clip(0, 255).astype(np.uint8) for i in range(60)]
    return write_clip(path, pictures, even_times(60, 24), options={"g": "12", "bf": "2"}, **more)


@pytest.mark.parametrize("cuts", [True, False])
async def test_a_broken_middle_is_told_as_a_span_and_costs_no_other_sample(scan: Scan, cuts: bool) -> None:
    clip = noisy_clip(scan.folder / "a.mkv", time_base=MS)
    path = scratched(clip, scan.folder / "b.mkv", 0.5, length=3000)
    samples, end = await scan.segment(path, ScanPlan(0.002, 2.5, 1 / 24, cuts))
    lost = [sample for sample, _ in samples if sample.lost]
    assert lost
    assert sum(stop - start for start, stop, _ in end.failed_s) < 0.8
    for sample in lost:
        assert sample.lost.startswith("frame_damaged: ")
        assert any(start <= sample.time_s < stop for start, stop, _ in end.failed_s)
    assert all(0.3 < start < stop < 2.2 for start, stop, _ in end.failed_s)
    right = [number for sample, number in samples if not sample.lost and number is not None]
    assert len(set(right)) + len(lost) >= 58
    assert all(abs(sample.time_s - clip.times_s[n]) < 6e-4 for sample, n in samples if n is not None)


@pytest.mark.parametrize("audio", [True, False])
async def test_what_a_damaged_matroska_file_passes_over_in_silence_is_a_failed_span(scan: Scan, audio: bool) -> None:
    """Its reader goes on at the next cluster without a word; the frame before did not stand all that time."""
    pictures = [index_picture(i // 5, (160, 96)) for i in range(240)]
    clip = write_clip(scan.folder / "a.mkv", pictures, even_times(240, 24), audio=audio, options={"g": "12"})
    whole, end = await scan.segment(clip.path, ScanPlan(0.0, 10.0, 0.5, cuts=False))
    assert end.failed_s == () and all(sample.until_s is not None for sample, _ in whole)
    path = scratched(clip, scan.folder / "b.mkv", 0.4, length=4000 if audio else 60)
    samples, end = await scan.segment(path, ScanPlan(0.0, 10.0, 0.5, cuts=False))
    ((start_s, stop_s, _),) = end.failed_s
    assert stop_s - start_s > 0.3
    for sample, number in samples:
        if sample.lost:
            assert start_s <= sample.time_s < stop_s
        else:
            assert number == round(sample.time_s * 24) // 5
            assert sample.until_s is None or sample.until_s < sample.time_s + 0.05


async def test_a_file_that_ends_early_fails_to_its_end(scan: Scan) -> None:
    clip = noisy_clip(scan.folder / "a.ts", container="mpegts")
    facts = await scan.facts(clip.path)
    clip.path.write_bytes(clip.path.read_bytes()[: clip.path.stat().st_size // 2])
    samples, end = await scan.segment(clip.path, ScanPlan(0.0, 2.5, 0.25, cuts=True), facts=facts)
    known = [sample for sample, _ in samples if not sample.lost]
    assert known[-1].time_s < 1.6
    assert len(known) < 10 or end.failed_s


async def test_a_video_of_which_nothing_can_be_decoded_has_failed_as_a_whole(scan: Scan) -> None:
    clip = index_clip(scan.folder / "a.mp4", frames=6)
    facts = await scan.facts(clip.path)
    data = bytearray(clip.path.read_bytes())
    start, stop = data.index(b"mdat") + 4, data.rindex(b"moov") - 4
    data[start:stop] = bytes(stop - start)
    clip.path.write_bytes(bytes(data))
    samples, end = await scan.segment(clip.path, ScanPlan(0.0, 0.25, 0.1, cuts=True), facts=facts)
    assert [(sample.time_s, bool(sample.lost)) for sample, _ in samples] == [(0.0, True), (0.1, True), (0.2, True)]
    assert [(start, stop) for start, stop, _ in end.failed_s] == [(0.0, 0.25)]


async def test_frames_that_are_not_needed_any_more_are_gone_without_a_garbage_collection(scan: Scan) -> None:
    clip = index_clip(scan.folder / "a.mp4", frames=96)
    gc.collect()
    gc.disable()
    try:
        samples, _ = await scan.segment(clip.path, ScanPlan(0.0, 4.0, 1 / 24, cuts=True))
        alive = sum(issubclass(type(one), av.VideoFrame) for one in gc.get_objects())
    finally:
        gc.enable()
    assert len(samples) == 96
    # Three in a row and those that later ones are compared with.
    assert alive <= 3 + segment_scan.MOST_REFERENCES + 3


FACTS = VideoFacts(160, 96, 2.0, 48, 24.0, 0, 0.0, "h264", "mov", None, False, None)


@pytest.mark.parametrize("kind", ["empty", "text", "sound", "encrypted"])
async def test_what_is_no_video_says_what_it_is(scan: Scan, kind: str) -> None:
    path = scan.folder / "a.mp4"
    if kind == "sound":
        sound_file(path)
    elif kind == "encrypted":
        key = "00112233445566778899aabbccddeeff"
        scheme = {"encryption_scheme": "cenc-aes-ctr", "encryption_key": key, "encryption_kid": key}
        index_clip(path, container_options=scheme)
    else:
        path.write_bytes(b"Dear reader,\n" * 99 if kind == "text" else b"")
    with pytest.raises(WorkerError) as caught:
        await scan.segment(path, ScanPlan(0.0, 2.0, 0.5, cuts=True), facts=FACTS)
    codes = {"empty": "video_damaged", "text": "unsupported_video", "sound": "no_video_stream"}
    assert caught.value.code == codes.get(kind, "video_encrypted")


async def test_a_folder_that_is_gone_ends_the_scan(scan: Scan) -> None:
    clip = index_clip(scan.folder / "a.mp4")
    scan.out.rmdir()
    with pytest.raises(WorkerError) as caught:
        await scan.segment(clip.path, ScanPlan(0.0, 2.0, 0.5, cuts=True))
    assert caught.value.code == "work_gone"


async def test_files_in_turn_stay_open_and_large_ones_alone(scan: Scan, monkeypatch: pytest.MonkeyPatch) -> None:
    clips = [index_clip(scan.folder / f"{name}.mp4", size_px=(160, 96 + 16 * name)) for name in range(3)]
    plan = ScanPlan(0.0, 2.0, 0.5, cuts=True)
    numbers = {}
    for first in range(4):
        for clip in clips:
            numbers[clip.path, first] = [n for _, n in (await scan.segment(clip.path, plan, first, 1))[0]]
            assert len(video_scan_child.open_files()) <= video_scan_child.MOST_OPEN
    assert all(12 * first in numbers[clip.path, first] for clip in clips for first in range(4))
    monkeypatch.setattr(video_scan_child, "MOST_OPEN_PIXELS", 160 * 96)
    for clip in clips:
        await scan.segment(clip.path, plan, 0, 1)
        assert video_scan_child.open_files() == [clip.path]


async def test_a_real_child_survives_an_abandoned_scan_and_a_killed_one_is_replaced(tmp_path: Path) -> None:
    clip = index_clip(tmp_path / "a.mp4", frames=96)
    pool = ChildPool("scan", SCAN_MODULE, size=1, config={}, memory_limit_bytes=DECODER_MEMORY_LIMIT_BYTES)
    async with pool:
        scan = Scan(pool, tmp_path)
        facts, plan = await scan.facts(clip.path), ScanPlan(0.0, 4.0, 0.5, cuts=True)
        whole = await scan.segment(clip.path, plan, facts=facts)
        pid = pool.stats().children[0].pid
        assert pid is not None
        found = scan_segment(pool, clip.path, facts, plan, 0, 8, scan.out, timeout_s=100, job="t")
        async with aclosing(found):
            async for _ in found:
                break
        assert pool.stats().children[0].pid == pid
        os.kill(pid, signal.SIGKILL)
        # The child is seen to be gone before the next task is given to another, or the task says that it was lost.
        try:
            again = await scan.segment(clip.path, plan, facts=facts)
        except WorkerError as error:
            assert error.code == "decoder_crashed"
            again = await scan.segment(clip.path, plan, facts=facts)
        assert plain(again[0]) == plain(whole[0])
        assert pool.stats().children[0].pid != pid


@given(
    start_s=st.floats(0, 1e4),
    length_s=st.floats(0, 1e4),
    interval_s=st.floats(0.04, 60),
    size=st.integers(1, 40),
)
def test_segments_share_out_the_range(start_s: float, length_s: float, interval_s: float, size: int) -> None:
    plan = ScanPlan(start_s, start_s + length_s, interval_s, cuts=True)
    last = plan.grid_s(plan.grid_count - 1)
    assert plan.grid_count == 1 or last < plan.end_s
    assert plan.grid_s(plan.grid_count) >= plan.end_s - 1e-5 * interval_s - 1e-9 * plan.end_s
    reached_s = plan.start_s
    for first in range(0, min(plan.grid_count, 50 * size), size):
        begins_s, ends_s = plan.span_s(first, size)
        assert begins_s == reached_s
        reached_s = ends_s
    assert reached_s == plan.end_s or plan.grid_count > 50 * size
