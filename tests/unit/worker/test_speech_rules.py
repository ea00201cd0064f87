"""How a spoken notice is held against a pack, and inspect_video's checks as findings."""

from __future__ import annotations

import pytest

from sam2_mcp_worker.checks.exposure import Exposure, Exposures, Stretch
from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.rule_packs import VideoRules
from sam2_mcp_worker.checks.rule_packs.sections import SpeechRules
from sam2_mcp_worker.checks.speech_rules import speech_findings
from sam2_mcp_worker.checks.spoken import Spoken
from sam2_mcp_worker.engines.ports import TextLine
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, Span, VideoLooks
from sam2_mcp_worker.pipelines.video_findings import find_all
from sam2_mcp_worker.pipelines.video_rule_findings import video_findings

TEN = "가나다라마바사아자차"
RULES = SpeechRules(
    basis="house", note="ours", max_rate_ratio=1.2, max_quieter_db=3.0, min_share=0.25, while_shown=True
)


def said(*parts: tuple[float, float, str, float | None]) -> list[Spoken]:
    return [Spoken(*part) for part in parts]


def spot(notice_s: float = 10.0, level: float = -20.0) -> list[Spoken]:
    """Ten seconds of selling at five syllables a second, then a notice of fifty syllables."""
    return said((0.0, 10.0, TEN * 5, -20.0), (10.0, 10.0 + notice_s, TEN * 5, level))


def found(speech: list[Spoken], shown: Exposures | None = None, complete: bool = True) -> dict[str, Finding]:
    findings = speech_findings(RULES, speech, [1], shown, complete=complete)
    assert all(one.kind == "speech_unbalanced" and one.basis == "house" for one in findings)
    return {one.rule.removeprefix("speech."): one for one in findings}


def shown(start_s: float, end_s: float) -> Exposures:
    return Exposures((Exposure(start_s, start_s, end_s, end_s, (Stretch(start_s, end_s),)),))


@pytest.mark.parametrize(("notice_s", "verdict"), [(10.0, "met"), (8.4, "met"), (8.0, "review"), (5.0, "not_met")])
def test_a_notice_is_spoken_no_faster_than_the_rest(notice_s, verdict):
    rate = found(spot(notice_s))["max_rate_ratio"]
    assert rate.verdict == verdict
    assert rate.measured == pytest.approx(10 / notice_s) and (rate.start_s, rate.end_s) == (10.0, 10.0 + notice_s)


@pytest.mark.parametrize(("level", "verdict"), [(-15.0, "met"), (-23.0, "met"), (-23.5, "review"), (-26.0, "not_met")])
def test_a_notice_is_spoken_no_quieter_than_the_rest(level, verdict):
    loudness = found(spot(level=level))["max_quieter_db"]
    assert (loudness.verdict, loudness.unit) == (verdict, "dB")
    assert loudness.measured == pytest.approx(-20.0 - level)


def test_a_notice_has_its_share_of_the_time():
    assert found(spot(5.0))["min_share"].verdict == "met"
    short = found(spot(2.0))["min_share"]
    assert short.verdict == "not_met" and short.measured == pytest.approx(1 / 6)


def test_a_notice_is_on_the_screen_while_it_is_spoken():
    assert found(spot(), shown(9.0, 21.0))["while_shown"].verdict == "met"
    assert found(spot(), shown(0.0, 11.0))["while_shown"].verdict == "not_met"
    possible = Exposures(possible=(Stretch(9.0, 21.0),))
    assert found(spot(), possible)["while_shown"].verdict == "cannot_tell"
    without = found(spot())["while_shown"]
    assert without.verdict == "cannot_tell" and "no pictures" in without.what


def test_without_other_speech_or_levels_there_is_nothing_to_compare_with():
    alone = speech_findings(RULES, said((0.0, 9.0, TEN, None)), [0])
    assert {one.rule: one.verdict for one in alone} == {
        "speech.max_rate_ratio": "cannot_tell",
        "speech.max_quieter_db": "cannot_tell",
        "speech.min_share": "met",
        "speech.while_shown": "cannot_tell",
    }


def test_what_was_not_heard_may_be_spoken_otherwise():
    verdicts = {rule: one.verdict for rule, one in found(spot(5.0), complete=False).items()}
    assert set(verdicts.values()) == {"cannot_tell"}


def test_without_a_notice_or_rules_there_is_nothing_to_find():
    assert speech_findings(RULES, spot(), []) == ()
    assert speech_findings(RULES, spot(), [7]) == ()
    assert speech_findings(None, spot(), [1]) == ()
    assert speech_findings(SpeechRules(basis="house", note="ours"), spot(), [1]) == ()


VIDEO = VideoRules(min_text_height_px=12, min_text_height_share=0.03, min_exposure_s=1.0, basis="house", note="ours")
NOTICE, OTHER = "보험금 지급이 제한될 수 있습니다", "월 보험료 9,900원"


def video() -> VideoLooks:
    """The other text for two seconds at 20 px, the notice in one frame at 9 px."""
    looks = []
    for number in range(8):
        lines = [TextLine(OTHER, (50, 40, 300, 64), 20.0, 0.9)] if number < 4 else []
        if number == 6:
            lines.append(TextLine(NOTICE, (50, 300, 400, 312), 9.0, 0.9))
        looks.append(FrameLook(number / 2, "grid", lines=tuple(lines)))
    return VideoLooks(Span(0.0, 4.0), 0.5, True, 640, 360, tuple(looks))


def test_checks_of_a_video_become_findings_with_times_and_places():
    everything = find_all(video(), [NOTICE, OTHER], [], VIDEO)
    findings = video_findings(everything, VIDEO, {NOTICE: "limits"})
    assert {(one.rule, one.kind, one.verdict) for one in findings} == {
        ("video.min_exposure_s", "exposure_too_short", "cannot_tell"),
        ("video.min_text_height_px", "text_too_small", "not_met"),
        ("video.min_text_height_share", "text_too_small", "not_met"),
    }
    (height,) = (one for one in findings if one.rule == "video.min_text_height_px")
    assert height.what == "limits: 9.00 px, the minimum is 12"
    assert (height.measured, height.limit, height.unit, height.start_s) == (9.0, 12.0, "px", 3.0)
    assert height.box_xyxy == (50, 300, 400, 312)
    (time,) = (one for one in findings if one.kind == "exposure_too_short")
    assert time.what.startswith("limits: surely on the screen for ") and "possible" in time.what


def test_without_phrases_every_text_is_told_and_without_rules_none():
    everything = find_all(video(), [], [], VIDEO)
    rules = {one.what.split(":")[0] for one in video_findings(everything, VIDEO)}
    assert rules == {repr(NOTICE), repr(OTHER)}
    assert video_findings(everything, None) == ()
