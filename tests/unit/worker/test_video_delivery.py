"""What of a video's findings goes into which call: texts once each, findings as they are by now."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sam2_mcp_worker.checks.exposure import Check, Exposure, Exposures, Stretch
from sam2_mcp_worker.engines.ports import TextLine
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.video_scan import ScanPlan
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, Span
from sam2_mcp_worker.pipelines.segment_looks import SegmentLooks
from sam2_mcp_worker.pipelines.text_tracks import TextTrack
from sam2_mcp_worker.pipelines.video_coverage import all_looks
from sam2_mcp_worker.pipelines.video_delivery import (
    MAX_SPANS,
    SHOWINGS_TOLD,
    Told,
    chars,
    deliver,
    from_cursor,
    next_texts,
    tellable,
    to_cursor,
    told_findings,
    told_smallest,
    told_spans,
    told_text,
)
from sam2_mcp_worker.pipelines.video_findings import (
    LabelFinding,
    PhraseFinding,
    Place,
    SmallestText,
    VideoFindings,
    find_all,
)
from sam2_mcp_worker.pipelines.video_range import segment_numbers, segment_of
from sam2_mcp_worker.pipelines.video_rows import numbered
from sam2_mcp_worker.tools.video_result import LabelModel, PhraseModel, TextModel

KEY = "a" * 64
BOX = (10, 20, 110, 40)


def showings(count: int) -> Exposures:
    shown = [
        Exposure(at - 0.5, at, at + 1, at + 1.5, (Stretch(at, at + 1),)) for at in (3.0 * i + 1 for i in range(count))
    ]
    return Exposures(tuple(shown))


def track(number: int, *, closed: bool = True, text: str = "") -> TextTrack:
    words = text or f"문구 {number}"
    check = Check("min_exposure_s", 1.0, 1.0, "met")
    return TextTrack(
        str(number), words, 0.912, BOX, BOX, 14.04, 0.078, 3, 1.0, 2.0, showings(1), closed=closed, checks=(check,)
    )


def findings(texts: tuple[TextTrack, ...] = (), count: int = 1) -> VideoFindings:
    label = LabelFinding("coin", "shown", frames=3, exposures=showings(count), greatest=Place(1.0, BOX, 20.0))
    phrase = PhraseFinding("만기 환급금", "shown", score=1.0, read_as="만기 환급금", exposures=showings(count))
    return VideoFindings((label,), (phrase,), texts, (), None)


@given(st.lists(st.integers(1, 400), max_size=12), st.integers(0, 800))
def test_over_the_calls_every_text_is_told_once_and_in_order(lengths: list[int], budget: int) -> None:
    tracks = [track(i, text="가" * length) for i, length in enumerate(lengths)]
    told: list[int] = []
    while len(told) < len(tracks):
        new = next_texts(tracks, len(told), budget)
        assert new, "every call gets on"
        assert len(new) == 1 or sum(chars(one) for one in new) <= budget
        told += [one["number"] for one in new]
    assert told == list(range(1, len(tracks) + 1))
    assert next_texts(tracks, len(told), budget) == []


WORDS = ("보장 안내", "월 보험료 9,900원", "약관을 읽으세요", "문의 1588-1234")
ASKED = ScanPlan(0.0, 40.0, 0.5, True)
shows = st.tuples(
    st.floats(0, 38), st.sampled_from([0.4, 3.0, 14.0]), st.sampled_from(WORDS), st.sampled_from([20, 90])
)


def segment_with(showings_of: list[tuple[float, float, str, int]], number: int) -> SegmentLooks:
    """A segment in which these words stand from a time on, for some seconds, at some height."""
    segment = segment_of(ASKED, number)
    times = [ASKED.grid_s(segment.first + i) for i in range(segment.count)]
    return SegmentLooks(
        tuple(
            FrameLook(
                time_s,
                "grid",
                time_s + 0.04,
                lines=tuple(
                    TextLine(words, (10, y_px, 210, y_px + 20), 20.0, 0.9)
                    for start_s, length_s, words, y_px in showings_of
                    if start_s <= time_s < start_s + length_s
                ),
            )
            for time_s in times
        )
    )


@given(st.lists(shows, min_size=1, max_size=5), st.permutations(segment_numbers(ASKED)))
@settings(max_examples=30)
def test_in_whatever_order_segments_are_finished_texts_are_told_as_they_are_at_the_end(
    showings_of: list[tuple[float, float, str, int]], order: list[int]
) -> None:
    done: dict[int, SegmentLooks] = {}
    before, told = Told(), []
    for number in order:
        done[number] = segment_with(showings_of, number)
        looks = all_looks(ASKED, (320, 180), done, {}, {})
        found = find_all(looks, [], [], None)
        delivery = deliver(found, before, complete=looks.complete, max_chars=4000, beside=[])
        told += delivery.texts
        before = delivery.after
    told += next_texts(found.texts, before.texts, 10**6)
    assert told == next_texts(found.texts, 0, 10**6)


def test_what_may_still_change_waits_until_the_range_is_complete() -> None:
    over, open_ = track(1), track(2, closed=False)
    assert list(tellable(findings((over, open_)), complete=False)) == [over]
    assert list(tellable(findings((over, open_)), complete=True)) == [over, open_]


def test_a_cursor_carries_what_was_told_and_fits_its_request_only() -> None:
    told = Told(17, frozenset({2, 3, 9}), "0123456789ab")
    cursor = to_cursor("inspect_video", KEY, told)
    assert from_cursor(cursor, "inspect_video", KEY, 10) == told
    assert from_cursor(" ", "inspect_video", KEY, 10) == Told()
    for other in (("inspect_video", "b" * 64, 10), ("inspect_pdf", KEY, 10), ("inspect_video", KEY, 5)):
        with pytest.raises(WorkerError, match="cursor_invalid"):
            from_cursor(cursor, *other)


def test_showings_are_told_as_many_as_fit_and_the_rest_is_counted() -> None:
    many = findings(count=40)
    whole, small = told_findings(many, 40_000), told_findings(many, 4000)
    assert len(whole.labels[0]["exposures_s"]) == SHOWINGS_TOLD[0]
    assert whole.labels[0]["more_exposures"] == 40 - SHOWINGS_TOLD[0]
    assert small.chars <= 2000
    assert small.labels[0]["surely_s"] == whole.labels[0]["surely_s"] == 40.0
    assert small.labels[0]["exposures_s"][0] == [0.5, 1.0, 2.0, 2.5]


def test_where_texts_told_before_are_no_longer_the_first_ones_they_are_told_again_from_the_beginning() -> None:
    old = deliver(findings((track(1), track(2))), Told(), complete=True, max_chars=40_000, beside=())
    assert (old.anew, old.after.texts, len(old.after.mark)) == (False, 2, 12)
    more = deliver(findings((track(1), track(2), track(3))), old.after, complete=True, max_chars=40_000, beside=())
    assert (more.anew, [text["text"] for text in more.texts]) == (False, ["문구 3"])
    new = deliver(findings((track(3), track(1), track(2))), old.after, complete=True, max_chars=40_000, beside=())
    assert (new.anew, [text["text"] for text in new.texts]) == (True, ["문구 3", "문구 1", "문구 2"])
    assert deliver(findings((track(1),)), old.after, complete=False, max_chars=40_000, beside=()).anew


def test_forty_findings_in_a_small_result_are_told_in_brief() -> None:
    check = Check("min_text_height_px", 12.0, 9.0, "not_met", "too small")
    labels = tuple(
        LabelFinding(f"label {i}", "shown", frames=9, exposures=showings(3), checks=(check,)) for i in range(20)
    )
    phrases = tuple(PhraseFinding(f"문구 {i}", "not_shown") for i in range(20))
    many = VideoFindings(labels, phrases, (track(1), track(2)), (), None)
    told = deliver(many, Told(), complete=True, max_chars=4000, beside=["a note"])
    assert told.findings.labels[3] == {
        "number": 4,
        "label": "label 3",
        "state": "shown",
        "frames": 9,
        "surely_s": 3.0,
        "at_most_s": 6.0,
        "verdicts": {"min_text_height_px": "not_met"},
    }
    assert told.findings.phrases[0] == {"number": 21, "phrase": "문구 0", "state": "not_shown"}
    assert (len(told.texts), told.texts_waiting, told.after.texts) == (1, 1, 1)


def test_facts_are_short_and_say_nothing_where_there_is_nothing_to_say() -> None:
    assert told_text(7, track(1)) == {
        "number": 7,
        "text": "문구 1",
        "box_xyxy_px": [10, 20, 110, 40],
        "height_px": 14.0,
        "confidence": 0.91,
        "frames": 3,
        "exposures_s": [[0.5, 1.0, 2.0, 2.5]],
        "surely_s": 1.0,
        "at_most_s": 2.0,
        "verdicts": {"min_exposure_s": "met"},
    }
    unseen = VideoFindings(
        (LabelFinding("seal", "not_shown"),), (PhraseFinding("원금", "cannot_tell", "why"),), (), (), None
    )
    told = told_findings(unseen, 4000)
    assert told.labels == [{"number": 1, "label": "seal", "state": "not_shown"}]
    assert told.phrases == [{"number": 2, "phrase": "원금", "state": "cannot_tell", "reason": "why"}]
    assert told_smallest(None) is None
    assert told_smallest(SmallestText("작은", Place(1.23456, BOX, 9.04), 0.0251)) == {
        "text": "작은",
        "time_s": 1.235,
        "box_xyxy_px": [10, 20, 110, 40],
        "height_px": 9.0,
        "share": 0.0251,
    }


def test_findings_have_the_numbers_that_pictures_and_report_give_them() -> None:
    found = findings((track(1), track(2)))
    told = deliver(found, Told(texts=1), complete=True, max_chars=40_000, beside=())
    facts = (*told.findings.labels, *told.findings.phrases, *told.texts)
    named = numbered(found)
    assert [one["number"] for one in facts] == [number for number, _ in (*named.labels, *named.phrases, named.texts[1])]


def test_of_a_broken_video_the_first_spans_are_told() -> None:
    spans = [Span(float(i), i + 0.5, "torn") for i in range(30)]
    told = told_spans(spans)
    assert told is not None
    assert len(told) == MAX_SPANS
    assert told_spans([]) is None


@pytest.mark.parametrize("max_chars", [40_000, 200])
def test_every_fact_has_its_place_in_the_result(max_chars: int) -> None:
    place, check = Place(1.0, BOX, 20.0), Check("min_exposure_s", 1.0, 0.5, "cannot_tell", "between samples", 1.5)
    label = LabelFinding(
        "coin", "shown", "why", 3, 1.0, 2.0, showings(20), place, 0.1, place, 0.05, most_at_once=2, checks=(check,)
    )
    phrase = PhraseFinding(
        "1억원", "altered", "why", 0.9, "2억원", ("1억원 -> 2억원",), 3, 1.0, 2.0, showings(1), place, place, 0.05,
        checks=(check,),
    )  # fmt: skip
    told = told_findings(VideoFindings((label,), (phrase,), (), (), None, (check,)), max_chars)
    assert LabelModel(**told.labels[0]).model_dump(exclude_none=True) == told.labels[0]
    assert PhraseModel(**told.phrases[0]).model_dump(exclude_none=True) == told.phrases[0]
    text = told_text(1, replace(track(1), end_box_xyxy_px=(0, 0, 9, 9)))
    assert TextModel(**text).model_dump(exclude_none=True) == text
