"""What looks at a video add up to: labels, phrases and lines of text, and what cannot be told of them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sam2_mcp_worker.checks.exposure import Exposure, Stretch
from sam2_mcp_worker.checks.rule_packs import VideoRules
from sam2_mcp_worker.engines.ports import Box, Region, TextLine
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, Span, VideoLooks
from sam2_mcp_worker.pipelines.text_tracks import TextTrack
from sam2_mcp_worker.pipelines.video_findings import LabelFinding, PhraseFinding, Place, VideoFindings, find_all

RULES = VideoRules(
    min_text_height_px=12, min_text_height_share=0.03, min_exposure_s=1.0, basis="house", note="ours, not law"
)
NOTICE = "보험금 지급이 제한될 수 있습니다"


def line(text: str, y: int = 100, *, x: int = 50, height_px: float = 20.0, confidence: float = 0.9) -> TextLine:
    return TextLine(text, (x, y, x + 20 * len(text), y + 24), height_px, confidence)


def look(time_s: float, *lines: TextLine, **more: Any) -> FrameLook:
    return dataclasses.replace(FrameLook(time_s, "grid", lines=lines), **more)


def video(looks: Sequence[FrameLook], end_s: float | None = None, **more: Any) -> VideoLooks:
    end_s = looks[-1].time_s + 0.5 if end_s is None else end_s
    asked = VideoLooks(Span(0.0, end_s), 0.5, True, 640, 360, tuple(looks))
    return dataclasses.replace(asked, **more)


def shown(texts: Sequence[str], **more: Any) -> VideoLooks:
    """One look each half second; of several lines in one frame each is on its own row."""
    frames = [[line(part, 40 * row) for row, part in enumerate(text.split("|")) if part] for text in texts]
    return video([look(index / 2, *lines) for index, lines in enumerate(frames)], **more)


def phrase(looks: VideoLooks, text: str = NOTICE) -> PhraseFinding:
    return find_all(looks, [text], [], RULES).phrases[0]


def texts(looks: VideoLooks) -> list[TextTrack]:
    return list(find_all(looks, [], [], None).texts)


def test_the_spot_is_told_as_it_is() -> None:
    """Premium 0-2 s up to a cut, coins the whole time, a 12 px notice for one sample."""
    coin = Region("coin", (500, 200, 600, 320), 0.9)
    looks = []
    for number in range(12):
        lines = [line("월 보험료 9,900원", 40)] if number < 4 else []
        if number == 7:
            lines.append(line(NOTICE, 320, height_px=12.0))
        looks.append(look(number / 2, *lines, regions=(coin,)))
    before = look(1.958, line("월 보험료 9,900원", 40), regions=(coin,), kind="before_cut")
    looks[4] = dataclasses.replace(looks[4], kind="after_cut")
    looks.insert(4, before)
    found = find_all(video(looks, 6.0), ["월 보험료 9,900원", NOTICE], ["coin", "seal"], RULES)

    coins, seal = found.labels
    assert (coins.state, coins.frames, coins.most_at_once) == ("shown", 13, 1)
    assert coins.exposures.shown == (Exposure(0.0, 0.0, 5.5, 6.0, (Stretch(0.0, 5.5),), True, True),)
    assert coins.greatest == Place(0.0, (500, 200, 600, 320), 120.0) and coins.greatest_share == pytest.approx(1 / 3)
    assert (seal.state, seal.reason, seal.checks) == ("not_shown", "", ())

    premium, notice = found.phrases
    assert premium.state == "shown" and premium.exposures.shown[0].surely == (Stretch(0.0, 2.0),)
    assert premium.exposures.shown[0].latest_s == 2.0
    assert [check.verdict for check in premium.checks] == ["met", "met", "met"]
    assert notice.state == "shown" and notice.exposures.shown[0].earliest_s == 3.0
    assert notice.exposures.shown[0].latest_s == 4.0
    assert notice.smallest is not None and notice.smallest.height_px == 12.0
    assert [check.verdict for check in notice.checks] == ["cannot_tell", "met", "met"]

    assert found.cuts_s == (2.0,)
    assert [track.text for track in found.texts] == ["월 보험료 9,900원", NOTICE]
    assert found.smallest_text is not None and found.smallest_text.text == NOTICE
    assert [check.rule for check in found.checks] == ["min_text_height_px", "min_text_height_share"]


def test_a_phrase_over_two_lines_and_a_column_is_one_place() -> None:
    looks = shown([f"보험금 지급이|9월 행사|제한될 수 있습니다|{word}" for word in ("하나", "둘", "셋")])
    found = phrase(looks)
    assert (found.state, found.frames) == ("shown", 3)
    assert found.place == Place(0.0, (50, 0, 250, 104), 20.0)


@pytest.mark.parametrize(
    ("shown_text", "asked", "state"),
    [
        ("무료|유료", "무료", "shown"),
        ("월 9원", "9원", "shown"),
        ("지급|제한될|수 있|습니다", "지급 제한될 수 있습니다", "shown"),
        ("있습|니닭|수 없", "지급 제한될 수 있습니다", "not_shown"),
        ("유의|사항 안내", "유의사항", "shown"),
        ("습니다", "보험료가 오를 수 있습니다", "not_shown"),
    ],
)
def test_short_phrases_and_phrases_over_short_lines_are_found(shown_text: str, asked: str, state: str) -> None:
    assert phrase(shown([shown_text]), asked).state == state


def test_another_wording_with_the_same_ending_is_not_the_phrase() -> None:
    asked, other = (
        "갱신 시 보험료가 인상될 수 있습니다",
        "약관에 따른 지급 제한 사유 발생 시 보험금 지급이 제한될 수 있습니다",
    )
    assert phrase(shown([other] * 3), asked).state == "review"
    assert find_all(shown([other] * 3), [asked], [], RULES, [other]).phrases[0].state == "not_shown"
    assert phrase(shown([asked, other]), asked).state == "shown"


def test_a_line_below_that_turns_a_phrase_into_its_opposite_is_part_of_what_was_read() -> None:
    asked = "해지하실 때에도 보험금을 지급합니다"
    assert phrase(shown(["해지하실 때에도 보험금을 지급하지"]), asked).state == "review"
    assert phrase(shown(["해지하실 때에도 보험금을 지급하지|않습니다"]), asked).state == "altered"
    assert phrase(shown(["해지하실 때에도 보험금을 지급하지|아니함"]), asked).state == "review"
    assert phrase(shown(["해지하실 때에도 보험금을 지급합니댜|않습니다"]), asked).state == "shown"
    assert phrase(shown(["보험금 지급이|5|제한될 수 있습니댜"])).state == "shown"


def test_of_a_phrase_that_was_not_found_the_closest_line_is_told() -> None:
    found = phrase(shown(["월 보험료 9,900원", "아무 말"]), "월 9,900원")
    assert (found.state, found.read_as) == ("not_shown", "월 보험료 9,900원") and 0.5 < found.score < 0.8
    assert phrase(shown(["abc"]), NOTICE).read_as == ""


@pytest.mark.parametrize(
    ("texts_shown", "state", "reason"),
    [
        (["보험금 지급이 제한되지 않습니다"] * 2, "altered", ""),
        ([NOTICE, "보험금 지급이 제한되지 않습니다"], "shown", "1 other frames"),
        (["보험금 지급이 제한될"] * 2, "review", "a person"),
        (["아무 말도 없는 화면"] * 2, "not_shown", ""),
    ],
)
def test_the_best_reading_of_any_frame_decides(texts_shown: list[str], state: str, reason: str) -> None:
    found = phrase(shown(texts_shown))
    assert found.state == state and reason in found.reason
    assert bool(found.places) == (state != "not_shown")


@pytest.mark.parametrize(("confidence", "state"), [(0.9, "altered"), (0.7, "review")])
def test_other_figures_count_as_altered_only_where_the_line_was_read_surely(confidence: float, state: str) -> None:
    found = phrase(video([look(0, line("심의필 제2026-234호", confidence=confidence))]), "심의필 제2026-1234호")
    assert (found.state, found.differences) == (state, ("1234 -> 234",))
    assert ("hard to read" in found.reason) == (state == "review")


def test_frames_that_read_it_otherwise_keep_its_exposure_open() -> None:
    altered = "보험금 지급이 제한되지 않습니다"
    found = phrase(shown([NOTICE, NOTICE, altered, NOTICE, ""]))
    assert found.exposures.shown == (Exposure(0.0, 0.0, 1.5, 2.0, (Stretch(0.0, 0.5), Stretch(1.5, 1.5)), True),)


UNSURE = [
    ({"failed": (Span(1.0, 1.4),)}, {}, "1.00-1.40 s cannot be decoded"),
    ({"unreached": (Span(1.0, 1.5),)}, {}, "1.00-1.50 s not reached yet"),
    ({}, {"failed": "out of time"}, "1 of 2 frames failed (at 0.50 s)"),
    ({}, {"partly": "a tile failed"}, "1 of 2 frames were read in part (at 0.50 s)"),
]


@pytest.mark.parametrize(("of_video", "of_look", "said"), UNSURE)
def test_absence_is_only_claimed_over_what_was_read(
    of_video: dict[str, Any], of_look: dict[str, Any], said: str
) -> None:
    frames = [look(0.0, line("다른 말"), regions=()), look(0.5, regions=(), **of_look)]
    found = find_all(video(frames, 1.5, **of_video), [NOTICE], ["coin"], RULES)
    findings: list[PhraseFinding | LabelFinding] = [*found.phrases, *found.labels]
    for finding in findings:
        assert (finding.state, finding.reason) == ("cannot_tell", said)
        assert finding.exposures.possible and not finding.checks


def test_ink_that_was_not_read_may_hide_a_phrase_it_is_large_enough_for_and_hides_no_label() -> None:
    found = find_all(video([look(0, regions=(), undetected_ink=((0, 0, 100, 20),))]), [NOTICE], ["coin"], None)
    assert (found.phrases[0].state, found.labels[0].state) == ("cannot_tell", "not_shown")
    assert found.phrases[0].reason == "there is ink that was not read in 1 of 1 frames"
    assert phrase(video([look(0, undetected_ink=((0, 0, 10, 6),))])).state == "not_shown"


def test_unread_ink_keeps_a_showing_open_only_at_its_place() -> None:
    coin: Box = (400, 0, 600, 300)
    place: Box = (50, 100, 410, 124)
    looks = [look(0, undetected_ink=(place,)), *(look(i / 2, line(NOTICE), undetected_ink=(coin,)) for i in (1, 2))]
    ends = look(1.5, undetected_ink=(coin,))
    assert phrase(video([*looks, ends])).exposures.shown[0].latest_s == 1.5
    assert phrase(video([*looks, ends])).exposures.shown[0].earliest_s == 0.0
    hidden = look(1.5, undetected_ink=(place,))
    assert phrase(video([*looks, hidden, look(2.0)])).exposures.shown[0].latest_s == 2.0


def test_where_nobody_looked_for_regions_no_label_is_known() -> None:
    found = find_all(shown(["글자", "글자"]), [], ["coin"], None).labels[0]
    assert (found.state, found.reason) == ("cannot_tell", "nobody looked for regions in 2 of 2 frames")


def test_a_video_of_which_no_frame_is_known_tells_nothing() -> None:
    none = VideoLooks(Span(0.0, 3.0), 0.5, True, 640, 360, ())
    found = find_all(none, [NOTICE], ["coin"], RULES)
    assert found.phrases[0].reason == found.labels[0].reason == "no frame was sampled"
    spans = tuple(Span(float(second), second + 0.5) for second in range(5))
    many = find_all(dataclasses.replace(none, unreached=spans), [NOTICE], [], None)
    assert "and 2 more not reached yet" in many.phrases[0].reason
    assert (found.texts, found.smallest_text, found.checks) == ((), None, ())


def test_a_label_tells_its_tallest_region_its_smallest_text_and_how_many_there_are_at_once() -> None:
    small = Region("notice", (0, 0, 50, 20), 0.9, 8.0)
    large = Region("notice", (0, 100, 50, 180), 0.9, 11.4)
    empty = Region("notice", (0, 200, 50, 210), 0.9)
    other = Region("coin", (0, 0, 640, 360), 0.9)
    looks = [
        look(0, regions=(large, empty, other)),
        look(0.5, regions=(small, large)),
        look(1, regions=(small,)),
        look(1.5),
    ]
    found = find_all(video(looks), [], ["notice"], RULES).labels[0]
    assert (found.frames, found.most_at_once, found.first_s, found.last_s) == (3, 2, 0.0, 1.0)
    assert found.greatest is not None and found.greatest.height_px == 80
    assert found.smallest_text == Place(1, (0, 0, 50, 20), 8.0)
    assert [(check.rule, check.verdict) for check in found.checks] == [
        ("min_exposure_s", "met"),
        ("min_text_height_px", "not_met"),
        ("min_text_height_share", "not_met"),
    ]


def test_slips_of_reading_and_small_moves_are_one_item_told_by_its_commonest_reading() -> None:
    readings = [
        "보험금 지급이 제한될 수",
        "보험굼 지급이 제한될 수",
        "보험금 지급이 제한될 수",
        "보헙금 지급이 제한될 수",
    ]
    heights = [20.0, 19.0, 0.0, 22.0]
    looks = [
        look(i / 2, line(text, 100 + 3 * i, height_px=heights[i], confidence=0.5 + i / 10))
        for i, text in enumerate(readings)
    ]
    (track,) = texts(video(looks))
    assert (track.text, track.frames, track.height_px) == (readings[0], 4, 20.0)
    assert track.confidence == pytest.approx(0.7) and set(track.variants) == {readings[1], readings[3]}
    assert (track.box_xyxy_px[1], track.end_box_xyxy_px[1]) == (100, 109)


@pytest.mark.parametrize("other", ["월 8,900원부터 시작", "전혀 다른 자막 한 줄", "월 9,900원 이벤트"])
def test_other_numbers_and_other_words_at_the_same_place_are_other_items(other: str) -> None:
    first, second = texts(shown(["월 9,900원부터 시작", other]))
    assert (first.text, second.text, first.frames) == ("월 9,900원부터 시작", other, 1)


def test_a_line_elsewhere_that_reads_nearly_alike_is_another_item() -> None:
    looks = [look(0, line("보장 내용 안내문", 40)), look(0.5, line("보장 내용 안내믄", 300))]
    assert len(texts(video(looks))) == 2
    looks = [look(0, line("보장 내용 안내문", 40)), look(0.5, line("보장 내용 안내믄", 40, x=400))]
    assert len(texts(video(looks))) == 2
    tall = TextLine("보장 내용 안내믄", (50, 10, 210, 110), 90.0, 0.9)
    assert len(texts(video([look(0, line("보장 내용 안내문", 40)), look(0.5, tall)]))) == 2


def test_scrolling_lines_stay_the_same_items_also_with_slips() -> None:
    credits = [f"만든 사람들 {name} 감독" for name in ("김하나", "이두리", "박세찬", "최네모", "정다섯")]
    looks = []
    for number in range(6):
        rows = [(text, 340 - 50 * number + 44 * row) for row, text in enumerate(credits)]
        lines = [line(text.replace("감", "갑") if number == 3 and "박" in text else text, y) for text, y in rows]
        looks.append(look(number / 2, *lines))
    found = texts(video(looks))
    assert [track.text for track in found] == credits
    assert all(track.frames == 6 and track.end_box_xyxy_px[1] < track.box_xyxy_px[1] for track in found)


def test_the_same_short_text_at_two_places_is_two_items() -> None:
    looks = [look(i / 2, line("무료", 40), line("무료", 200)) for i in range(2)]
    looks.append(look(1.0, line("무료", 300)))
    assert [track.frames for track in texts(video(looks))] == [2, 2, 1]
    long = [look(0, line("같은 자막 두 번", 40), line("같은 자막 두 번", 200)), look(0.5, line("같은 자막 두 번", 190))]
    assert [track.frames for track in texts(video(long))] == [1, 2]


def test_a_text_that_comes_back_soon_is_one_item_with_two_showings_and_later_a_further_one() -> None:
    soon = shown(["자막 하나", "", "", "자막 하나", ""])
    (track,) = texts(soon)
    assert [(part.first_s, part.last_s) for part in track.exposures.shown] == [(0.0, 0.0), (1.5, 1.5)]
    late = [look(0, line("자막 하나")), *(look(5.0 * step) for step in range(1, 4)), look(20, line("자막 하나"))]
    assert [track.first_s for track in texts(video(late))] == [0, 20]


def test_a_failed_frame_and_ink_over_its_place_keep_an_item_open_ink_elsewhere_does_not() -> None:
    place: Box = (50, 100, 150, 124)
    hidden = video([look(0, line("자막 하나")), look(0.5, failed="x"), look(1, undetected_ink=(place,)), look(1.5)])
    assert texts(hidden)[0].exposures.shown[0].latest_s == 1.5
    elsewhere = video([look(0, line("자막 하나")), look(0.5, undetected_ink=((50, 300, 150, 330),))])
    assert texts(elsewhere)[0].exposures.shown[0].latest_s == 0.5
    late = video([look(0.5, undetected_ink=(place,)), look(1, line("자막 하나"))])
    assert texts(late)[0].exposures.shown[0].earliest_s == 0.0


def test_of_a_frame_read_in_part_and_of_ink_over_half_of_its_place_nothing_is_known() -> None:
    partly = video([look(0, line("자막 하나")), look(0.5, partly="a tile failed"), look(1)])
    assert texts(partly)[0].exposures.shown[0].latest_s == 1.0
    half = video([look(0, line("자막 하나")), look(0.5, undetected_ink=((50, 100, 100, 124),)), look(1)])
    assert texts(half)[0].exposures.shown[0].latest_s == 1.0


def test_a_text_that_the_last_frame_shows_may_be_there_to_the_end_of_the_range() -> None:
    (track,) = texts(video([look(0), look(0.5, line("자막 하나"))], end_s=1.0))
    assert track.exposures.shown == (Exposure(0.0, 0.5, 0.5, 1.0, (Stretch(0.5, 0.5),), False, True),)


def test_a_frame_ends_when_the_next_one_that_is_known_came() -> None:
    (track,) = texts(video([look(0, line("자막 하나"), until_s=0.7), look(0.5), look(1.0)]))
    assert track.exposures.shown[0].surely == (Stretch(0.0, 0.5),)


def test_failed_frames_make_no_item_forgotten_and_two_lines_of_one_frame_are_never_one_item() -> None:
    failed = [look(i / 10, failed="x") for i in range(1, 8)]
    slips = [look(0, line("보장 내용 안내문")), *failed, look(1, line("보장 내용 안내믄"))]
    assert [track.frames for track in texts(video(slips))] == [2]
    twice = [look(0, line("보장 내용 안내문")), look(0.5, line("보장 내용 안내믄"), line("보장 네용 안내문", 108))]
    assert [track.frames for track in texts(video(twice))] == [2, 1]


def test_an_item_whose_place_is_hidden_is_not_over() -> None:
    place: Box = (50, 100, 150, 124)
    looks = [look(0, line("자막 하나")), *(look(6.0 * step, undetected_ink=(place,)) for step in (1, 2, 3))]
    found = texts(video([*looks, look(24, line("자막 하나"))], unreached=(Span(24.2, 30),)))
    assert [track.frames for track in found] == [2]


def test_specks_doubtful_lines_and_lines_without_a_height_are_not_the_smallest_text() -> None:
    looks = video(
        [
            look(
                0,
                line("I", 10, height_px=3),
                line("흐린 글자", 60, height_px=4, confidence=0.3),
                line("높이 없음", 120, height_px=0),
                line("진짜 글자", 200, height_px=9),
            )
        ]
    )
    found = find_all(looks, [], [], RULES)
    assert found.smallest_text is not None and found.smallest_text.text == "진짜 글자"
    assert found.smallest_text.share == pytest.approx(9 / 360)
    assert [check.verdict for check in found.checks] == ["not_met", "not_met"]


def test_a_line_that_is_cut_by_the_frame_or_hardly_readable_breaks_no_rule() -> None:
    entering = TextLine("보험료 9,9", (560, 100, 640, 124), 20.0, 0.9)
    rising = TextLine("출연 홍길동", (50, 352, 200, 360), 8.0, 0.9)
    at_rest = TextLine("작은 글자", (300, 351, 400, 360), 9.0, 0.9)
    frames = [look(0), look(0.5, entering, rising, line("흐린", 200, height_px=4, confidence=0.3), at_rest)]
    found = find_all(video([*frames, look(1.0, at_rest), look(1.5)]), [], [], RULES)
    told = {track.text: [check.verdict for check in track.checks] for track in found.texts}
    assert told["보험료 9,9"] == ["cannot_tell", "met", "met"]
    assert told["출연 홍길동"] == told["흐린"] == ["cannot_tell"] * 3
    assert told["작은 글자"] == ["cannot_tell", "not_met", "not_met"], "print at rest on the edge is whole"
    assert found.smallest_text is not None and found.smallest_text.text == "작은 글자"


@pytest.mark.parametrize(
    ("of_video", "frames", "verdict"),
    [
        ({}, [NOTICE, ""], "not_met"),
        ({"more_before": True}, [NOTICE, ""], "cannot_tell"),
        ({"more_behind": True}, [NOTICE, ""], "not_met"),
        ({"more_behind": True}, ["", NOTICE], "cannot_tell"),
        ({"more_before": True, "more_behind": True}, ["", NOTICE, ""], "cannot_tell"),
        ({"more_before": True, "more_behind": True}, [NOTICE, NOTICE, NOTICE, ""], "met"),
    ],
)
def test_what_is_shown_at_the_edge_of_the_asked_range_may_go_on_beyond_it(
    of_video: dict[str, bool], frames: list[str], verdict: str
) -> None:
    found = find_all(shown([f"|{text}" for text in frames], **of_video), [NOTICE], [], RULES)
    assert [found.phrases[0].checks[0].verdict, found.texts[0].checks[0].verdict] == [verdict] * 2


def test_without_rules_nothing_is_held_against_any() -> None:
    found = find_all(shown([NOTICE] * 3), [NOTICE], [], None)
    assert not found.checks and not found.phrases[0].checks and not found.texts[0].checks
    only_time = VideoRules(min_exposure_s=0.5, basis="house", note="ours")
    assert [check.rule for check in find_all(shown([NOTICE] * 3), [NOTICE], [], only_time).phrases[0].checks] == [
        "min_exposure_s"
    ]


WORDS = ("자막 하나", "월 9,900원", "월 8,900원", NOTICE, "작은 글씨 안내", "무료")


@st.composite
def cut_videos(draw: st.DrawFn) -> tuple[VideoLooks, int]:
    """A video of up to 60 looks, and at which of them an earlier call had ended."""
    chance = random.Random(draw(st.integers(0, 10**6)))
    step_s = chance.choice([0.5, 3.0, 11.0])
    looks: list[FrameLook] = []
    for index in range(chance.randrange(2, 60)):
        rows = chance.sample(range(9), chance.randrange(4))
        lines = [line(chance.choice(WORDS), 40 * row, x=chance.choice([50, 52])) for row in rows]
        failed = "x" if chance.random() < 0.1 else ""
        ink: tuple[Box, ...] = ((0, 0, 640, 360),) if chance.random() < 0.1 else ()
        looks.append(
            look(index * step_s, failed=failed) if failed else look(index * step_s, *lines, undetected_ink=ink)
        )
    whole = video(looks)
    return whole, chance.randrange(1, len(looks))


def before(whole: VideoLooks, index: int) -> VideoLooks:
    rest = Span(whole.looks[index].time_s, whole.asked.end_s)
    return dataclasses.replace(whole, looks=whole.looks[:index], unreached=(rest,))


@given(cut_videos())
@settings(max_examples=60)
def test_what_is_closed_in_an_earlier_call_is_the_beginning_of_what_a_later_one_tells(
    cut: tuple[VideoLooks, int],
) -> None:
    whole, index = cut
    early = [track for track in texts(before(whole, index)) if track.closed]
    late = texts(whole)
    assert late[: len(early)] == early
    assert all(track.closed for track in late)
    assert len({track.key for track in late}) == len(late)
    assert sum(track.frames for track in late) == sum(len(look.lines) for look in whole.looks)


@given(cut_videos())
@settings(max_examples=30)
def test_the_same_looks_give_the_same_findings(cut: tuple[VideoLooks, int]) -> None:
    def found() -> VideoFindings:
        return find_all(cut[0], [NOTICE, "무료"], ["coin"], RULES)

    assert found() == found()
    for finding in found().phrases:
        assert finding.frames == len(finding.places) and finding.state in ("shown", "cannot_tell", "not_shown")
