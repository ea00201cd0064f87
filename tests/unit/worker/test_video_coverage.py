"""The account of a video: every second is read, failed or unreached, whatever became of its segments."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.engines.ports import Region, TextLine
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.video_scan import MOST_CUTS, ScanPlan
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, Span
from sam2_mcp_worker.pipelines.look_moments import LookMoments
from sam2_mcp_worker.pipelines.read_picture import PictureReading
from sam2_mcp_worker.pipelines.segment_looks import (
    FrameReading,
    SegmentLooks,
    collected,
    read_look,
    same_look,
    segment_from_json,
    segment_to_json,
)
from sam2_mcp_worker.pipelines.text_tracks import text_tracks
from sam2_mcp_worker.pipelines.video_coverage import BegunSegment, all_looks, cover, joined
from sam2_mcp_worker.pipelines.video_range import segment_numbers, segment_of

ASKED = ScanPlan(0.0, 30.0, 0.5, True)  # four segments of eight seconds, the last one of six
SIZE = (320, 180)
LINE = TextLine("만기 환급", (10, 10, 90, 30), 14.0, 0.9)
COIN = Region("coin", (100, 20, 140, 60), 0.8)


def looks_of(number: int, asked: ScanPlan = ASKED) -> tuple[FrameLook, ...]:
    segment = segment_of(asked, number)
    return tuple(FrameLook(asked.grid_s(segment.first + i), "grid") for i in range(segment.count))


def test_of_two_looks_at_the_frame_on_a_border_the_one_that_knows_more_counts_and_the_cut_is_kept() -> None:
    border = FrameLook(8.0, "grid", lines=(LINE,))
    for first, second in (
        (replace(border, partly="a tile failed", lines=()), replace(border, time_s=8.000001)),
        (border, replace(border, kind="after_cut", time_s=8.000001, failed="x", lines=())),
    ):
        known = all_looks(ASKED, SIZE, {1: SegmentLooks((first,)), 2: SegmentLooks((second,))}, {}, {})
        (look,) = known.looks
        assert (look.lines, look.partly, look.failed) == ((LINE,), "", "")
        assert look.kind == second.kind


def test_a_frame_that_looks_the_same_has_its_own_times() -> None:
    earlier = FrameLook(1.0, "before_cut", 1.04, lines=(LINE,))
    later = same_look(FrameLook(5.0, "grid", 5.5), earlier)
    assert (later.time_s, later.until_s, later.kind, later.same_as_s) == (5.0, 5.5, "grid", 1.0)
    assert later.lines == earlier.lines


def test_behind_the_last_cut_with_samples_further_cuts_may_lie_between_them() -> None:
    cuts = tuple(FrameLook(0.1 + 0.2 * i, "after_cut") for i in range(MOST_CUTS))
    done = {1: SegmentLooks(cuts), 2: SegmentLooks(cuts[1:])}
    known = all_looks(
        ASKED, SIZE, done, {}, {3: BegunSegment(tuple(replace(c, time_s=c.time_s + 16) for c in cuts), 20)}
    )
    assert [(span.start_s, span.end_s) for span in known.restless] == [(cuts[-1].time_s, 8.0), (17.5, 24.0)]
    steady = all_looks(ASKED, SIZE, {1: SegmentLooks(looks_of(1))}, {}, {})
    seen = [True] * len(steady.looks)
    assert LookMoments(steady).exposures(seen).longest_surely_s == 7.5
    restless = replace(steady, restless=(Span(3.1, 8.0),))
    assert LookMoments(restless).exposures(seen).longest_surely_s == 3.0


def test_a_text_is_only_over_where_no_segment_may_still_be_lost() -> None:
    """A segment under way may yet fail, and its looks are gone then: what was told of them would count again."""
    long = replace(ASKED, interval_s=4.0)
    first = (FrameLook(0.0, "grid", lines=(LINE,)), FrameLook(4.0, "grid"))
    begun = BegunSegment((FrameLook(8.0, "grid"), FrameLook(12.0, "grid")), 12.0)
    known = all_looks(long, SIZE, {1: SegmentLooks(first)}, {}, {2: begun})
    assert known.settled_to_s == 8.0
    assert [track.closed for track in text_tracks(known, LookMoments(known))] == [False]
    settled = all_looks(long, SIZE, {1: SegmentLooks(first), 2: SegmentLooks(begun.looks)}, {}, {})
    assert settled.settled_to_s == 16.0
    assert [track.closed for track in text_tracks(settled, LookMoments(settled))] == [True]


def lost(what: str = "gone") -> WorkerError:
    return WorkerError("video_damaged", what)


@given(
    st.lists(st.sampled_from(["done", "failed", "begun", "damaged", "unread", ""]), min_size=4, max_size=4), st.data()
)
def test_every_second_is_read_failed_or_unreached(states: list[str], data: st.DataObject) -> None:
    done, failed, begun = {}, {}, {}
    for number, state in enumerate(states, start=1):
        looks, segment = looks_of(number), segment_of(ASKED, number)
        if state == "failed":
            failed[number] = lost()
        elif state == "begun":
            reach = data.draw(st.integers(1, len(looks)))
            begun[number] = BegunSegment(looks[:reach], looks[reach - 1].time_s)
        elif state == "damaged":
            start_s = data.draw(st.floats(segment.start_s, segment.end_s - 1))
            done[number] = SegmentLooks(looks, (Span(start_s, start_s + 3, "torn"),))  # may reach into the next one
        elif state == "unread":
            index = data.draw(st.integers(0, len(looks) - 1))
            torn = replace(looks[index], failed="the reader crashed")
            done[number] = SegmentLooks((*looks[:index], torn, *looks[index + 1 :]))
        elif state == "done":
            done[number] = SegmentLooks(looks)
    known = all_looks(ASKED, SIZE, done, failed, begun)
    account = cover(known)
    assert account.read_s + account.failed_s + account.unreached_s == pytest.approx(30.0)
    assert known.complete == (not any(state in ("", "begun") for state in states))
    assert (account.failed_s > 0) == any(state in ("failed", "damaged", "unread") for state in states)
    times = [look.time_s for look in known.looks]
    assert times == sorted(set(times))
    for spans in (account.failed, account.unreached):
        assert all(a.end_s <= b.start_s for a, b in itertools.pairwise(spans))


def test_unread_frames_count_until_the_next_one() -> None:
    looks = list(looks_of(1))
    looks[3] = replace(looks[3], failed="the reader crashed")
    account = cover(all_looks(ScanPlan(0, 8, 0.5, True), SIZE, {1: SegmentLooks(tuple(looks))}, {}, {}))
    assert account.failed == (Span(1.5, 2.0, "the reader crashed"),)
    assert (account.frames_read, account.frames_same, account.frames_failed) == (15, 0, 1)


def test_a_segment_under_way_is_known_as_far_as_it_is_read() -> None:
    begun = {2: BegunSegment(looks_of(2)[:3], 9.033)}
    looks = all_looks(ASKED, SIZE, {1: SegmentLooks(looks_of(1))}, {}, begun)
    assert len(looks.looks) == 19
    assert looks.unreached == (Span(9.033, 30.0, "not reached yet"),)


def test_a_frame_on_which_two_segments_meet_is_one_look_and_keeps_its_cut() -> None:
    slide = FrameLook(7.0, "after_cut", 9.0, lines=(LINE,))
    first = SegmentLooks((*looks_of(1)[:14], slide))
    second = SegmentLooks((replace(slide, kind="grid"), *looks_of(2)[2:]))
    looks = all_looks(ScanPlan(0, 16, 0.5, True), SIZE, {1: first, 2: second}, {}, {})
    assert [look for look in looks.looks if look.time_s == 7.0] == [slide]
    failed = SegmentLooks((replace(slide, failed="no", lines=()), *looks_of(2)[2:]))
    looks = all_looks(ScanPlan(0, 16, 0.5, True), SIZE, {1: failed, 2: first}, {}, {})
    assert [look for look in looks.looks if look.time_s == 7.0] == [slide]


def test_spans_of_one_reason_become_one() -> None:
    spans = [Span(4, 6, "a"), Span(0, 2, "a"), Span(2, 4, "a"), Span(5, 9, "b"), Span(5.5, 5.7, "b")]
    assert joined(spans) == (Span(0, 6, "a"), Span(6, 9, "b"))


def test_a_segment_comes_back_from_its_file_as_it_was() -> None:
    read = FrameReading(
        FrameLook(0.0, "grid", 0.04, lines=(LINE,), regions=(COIN,), undetected_ink=((1, 2, 3, 4),), partly="cut"),
        stood_in="busy",
        dropped=2,
        invented=1,
        again="busy",
    )
    same = FrameReading(same_look(FrameLook(0.5, "before_cut", 0.54), read.look))
    torn = FrameReading(FrameLook(1.0, "after_cut", failed="damaged"))
    segment = collected([torn, same, read], (Span(2, 3, "torn"),), 4)
    assert [look.time_s for look in segment.looks] == [0.0, 0.5, 1.0]
    assert segment.looks[1].lines == (LINE,)
    assert segment.looks[1].same_as_s == 0.0
    assert (segment.stood_in["busy"], segment.dropped, segment.invented, segment.again) == (1, 2, 1, "busy")
    assert segment_from_json(segment_to_json(segment)) == segment


PLACE = FrameLook(1.0, "grid")
TILES = [(0, 0, 160, 180), (160, 0, 320, 180)]


def test_a_frame_of_which_nothing_was_read_is_failed_and_tried_again() -> None:
    reading = PictureReading((), (), unread=tuple((tile, "ocr crashed") for tile in TILES))
    read = read_look(PLACE, reading, tile_count=2, labels=False)
    assert read.look.failed == "ocr crashed"
    assert read.again


@pytest.mark.parametrize(
    "reading",
    [
        PictureReading((LINE,), (), unread=((TILES[0], "ocr crashed"),)),
        PictureReading((LINE,), (), (), truncated=(TILES[0],)),
        PictureReading((LINE,), (), (), dropped=1),
        PictureReading((LINE,), (), (), regions=(COIN,), unlooked=((TILES[1], "busy"),)),
    ],
)
def test_what_may_be_missing_from_a_frame_is_said(reading: PictureReading) -> None:
    look = read_look(PLACE, reading, tile_count=2, labels=True).look
    assert look.partly
    assert look.lines == (LINE,)


def test_where_nobody_looked_for_regions_there_are_none_known() -> None:
    assert read_look(PLACE, PictureReading((LINE,), (), ()), tile_count=2, labels=False).look.regions is None
    nobody = PictureReading((LINE,), (), (), unlooked=tuple((tile, "busy") for tile in TILES))
    look = read_look(PLACE, nobody, tile_count=2, labels=True).look
    assert look.regions is None
    assert not look.partly, "its text is whole"
    assert read_look(PLACE, PictureReading((), (), ()), tile_count=2, labels=True).look.regions == ()


def test_the_numbers_of_a_range_are_those_of_its_segments() -> None:
    assert segment_numbers(ASKED) == (1, 2, 3, 4)
