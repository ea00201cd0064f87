"""Phrases over pages, frames and speech: what the parts say together, and what nobody may conclude."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import date
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.phrase_judge import PhraseFinding, PhraseState
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage, Unread
from sam2_mcp_worker.checks.rule_packs import RulePack, load_rule_pack
from sam2_mcp_worker.checks.rule_packs.sections import SpeechRules
from sam2_mcp_worker.engines.ports import TextLine
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.media.video import VideoFacts
from sam2_mcp_worker.pipelines.document_reading import TextDocument
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, Span, VideoLooks
from sam2_mcp_worker.pipelines.gathered import Gathered
from sam2_mcp_worker.pipelines.minimum_findings import minimum_findings
from sam2_mcp_worker.pipelines.phrase_channels import both, not_heard, of_speech
from sam2_mcp_worker.pipelines.phrase_check_facts import unread_sentences
from sam2_mcp_worker.pipelines.phrase_judging import Judgement, judge_asked, judge_pack, so_far
from sam2_mcp_worker.pipelines.phrase_rows import numbered_rows, told_row
from sam2_mcp_worker.pipelines.read_documents import ReadDocument, VideoReading
from sam2_mcp_worker.pipelines.rule_checks import RuleChecks
from sam2_mcp_worker.pipelines.transcript import Said, SoundSpan, Transcript

NOTICE = "보험금 지급이 제한될 수 있습니다"
TURNED = "보험금 지급이 제한되지 않습니다"
OTHER = "오늘이 든든하면 내일이 환해집니다"
STATES = get_args(PhraseState)


@pytest.fixture(scope="module")
def pack() -> RulePack:
    return load_rule_pack("korean_insurance_ads").on(date(2026, 11, 1))


def read_text(*lines: str) -> ReadDocument:
    reading = Reading("text", "line", (ReadPage(1, "done", tuple(ReadLine(line, "text") for line in lines)),))
    return ReadDocument(TextDocument("\n".join(lines)), reading, Coverage((1,), {1: None}), "given")


def read_video(*texts: str) -> ReadDocument:
    """One look each half second, with one line of text or none."""
    looks = [
        FrameLook(n / 2, "grid", lines=(TextLine(text, (10, 10, 300, 34), 20.0, 0.95),) if text else ())
        for n, text in enumerate(texts)
    ]
    seen = VideoLooks(Span(0.0, len(texts) / 2), 0.5, True, 640, 360, tuple(looks))
    facts = VideoFacts(**{field.name: None for field in dataclasses.fields(VideoFacts)})  # type: ignore[arg-type]
    lines = tuple(ReadLine(text, "ocr", start_s=0.0, end_s=1.0) for text in texts if text)
    reading = Reading("video", "px", (ReadPage(1, "done", lines),))
    return ReadDocument(TextDocument(""), reading, Coverage((1,), {1: None}), "eyes", video=VideoReading(facts, seen))


def read_sound(*texts: str, unread: Sequence[Unread] = (), low_quality: bool = False) -> ReadDocument:
    lines = tuple(ReadLine(text, "speech", start_s=n * 3.0, end_s=n * 3.0 + 2) for n, text in enumerate(texts))
    span = SoundSpan(0.0, 10.0, "heard" if texts else "silent")
    said = tuple(Said(n * 3.0, n * 3.0 + 2, text) for n, text in enumerate(texts))
    transcript = Transcript("a.mp3", 0.0, 10.0, "ears", low_quality, "ko", said, (span,))
    reading = Reading("sound", "s", (ReadPage(1, "done", lines, tuple(unread)),))
    return ReadDocument(TextDocument(""), reading, Coverage((1,), {1: None}), "ears", transcript=transcript)


def asked(pack: RulePack, gathered: Gathered, text: str = NOTICE) -> PhraseFinding:
    [row] = judge_asked([text], pack, gathered).rows
    return row.became


def test_a_phrase_that_is_only_spoken_is_present_and_says_when(pack: RulePack) -> None:
    found = asked(pack, Gathered(read_video(OTHER, ""), read_sound(OTHER, NOTICE)))
    assert (found.state, found.source, found.start_s, found.end_s) == ("present", "speech", 3.0, 5.0)


def test_a_phrase_that_is_only_shown_is_present_and_says_where(pack: RulePack) -> None:
    found = asked(pack, Gathered(read_video("", NOTICE, NOTICE), read_sound(OTHER)))
    assert (found.state, found.source, found.start_s, found.end_s) == ("present", "ocr", 0.5, 1.0)
    assert found.boxes == ((1, (10, 10, 300, 34)),)


@pytest.mark.parametrize(
    ("sound", "trouble", "state", "reason"),
    [
        (None, "", "missing", "frames"),
        (read_sound(), "", "missing", "nobody speaks"),
        (read_sound(OTHER), "", "missing", "frames"),
        (read_sound(OTHER, unread=[Unread("the engine failed", start_s=4.0, end_s=9.0)]), "", "cannot_tell", "engine"),
        (None, "sound_damaged: it ends in the middle", "cannot_tell", "it ends in the middle"),
    ],
)
def test_missing_in_a_video_needs_all_frames_and_all_of_its_sound(
    pack: RulePack, sound: ReadDocument | None, trouble: str, state: str, reason: str
) -> None:
    found = asked(pack, Gathered(read_video(OTHER, OTHER), sound, trouble))
    assert found.state == state and reason in found.reason


def test_words_that_a_poor_engine_heard_otherwise_are_for_a_person(pack: RulePack) -> None:
    surely = asked(pack, Gathered(read_sound(TURNED)))
    assert (surely.state, asked(pack, Gathered(read_sound(TURNED, low_quality=True))).state) == ("altered", "review")
    assert of_speech(surely, low_quality=False) is surely


@given(st.sampled_from(STATES), st.sampled_from(STATES))
def test_two_channels_together_say_what_the_better_one_does_and_missing_only_if_both_do(
    shown: PhraseState, said: PhraseState
) -> None:
    on_screen = PhraseFinding("x", shown, "seen so", differences=("1 -> 2",) if shown == "altered" else ())
    in_speech = PhraseFinding("x", said, "heard so", differences=("1 -> 3",) if said == "altered" else ())
    together = both(on_screen, in_speech)
    assert (together.state == "missing") == (shown == said == "missing")
    assert (together.state == "present") == ("present" in (shown, said))
    assert together.state in (shown, said)
    if "altered" in (shown, said) and together.state == "present":
        assert "altered" in together.reason, "what one of them says otherwise is told"
    if together.state == "cannot_tell":
        assert ("seen so" in together.reason) == (shown == "cannot_tell")


def test_sound_that_nobody_heard_is_told_by_its_reason() -> None:
    assert (not_heard("x", "no engine").state, not_heard("x", "no engine").reason) == ("cannot_tell", "no engine")


def verdicts(judged: Judgement) -> dict[str, str]:
    return {row.rule.id: row.finding.verdict for row in judged.rows if row.rule and row.finding}


def test_a_pack_is_judged_whole_and_a_phrase_that_is_not_needed_is_no_finding(pack: RulePack) -> None:
    rule = next(one for one in pack.phrases if one.id == "read_terms")
    judged = judge_pack(pack, Gathered(read_text(rule.texts[0], OTHER, "하루 천원이면 됩니다")), date(2026, 11, 1))
    found = verdicts(judged)
    assert found["read_terms"] == "met"
    assert found["deposit_protection"] == "not_met", "always needed, and all was read"
    assert "renewal" not in found, "nothing says that the product is renewed"
    row = next(row for row in judged.rows if row.rule and row.rule.id == "renewal")
    assert row.became.state == "missing" and row.finding is None
    assert {one.kind for one in judged.others} >= {"forbidden_wording", "review_seal"}


def test_sound_that_nobody_heard_may_say_that_a_phrase_is_needed(pack: RulePack) -> None:
    whole, deaf = (Gathered(read_video(OTHER, OTHER), None, trouble) for trouble in ("", "sound_damaged: cut"))
    assert "renewal" not in verdicts(judge_pack(pack, whole, date(2026, 11, 1)))
    assert verdicts(judge_pack(pack, deaf, date(2026, 11, 1)))["renewal"] == "cannot_tell"


def test_what_is_altered_where_somebody_has_looked_may_stand_right_elsewhere(pack: RulePack) -> None:
    judged = judge_asked([NOTICE, OTHER], pack, Gathered(read_text(TURNED, OTHER)))
    altered, present = so_far(judged).rows
    assert judged.rows[0].finding and judged.rows[0].finding.verdict == "not_met"
    assert altered.finding and (altered.became.state, altered.finding.verdict) == ("altered", "review")
    assert altered.became.reason.startswith("as far as") and present == judged.rows[1]


def test_the_limit_of_before_is_stale_and_not_also_missing(pack: RulePack) -> None:
    before = load_rule_pack("korean_insurance_ads").on(date(2025, 8, 1))
    rule = next(one for one in pack.phrases if one.id == "deposit_protection")
    old = next(one for one in before.phrases if one.id == "deposit_protection").texts[0]
    gathered = Gathered(read_text(old))
    today = judge_pack(pack, gathered, date(2026, 11, 1))
    assert "not_met" in [one.verdict for one in today.others if one.kind == "phrase_stale"]
    assert "deposit_protection" not in verdicts(today), "said once, by the old wording"
    row = next(row for row in numbered_rows(today.rows, ()) if row.phrase and row.phrase.rule == rule)
    told = told_row(row, pack, gathered.joined, {})
    assert (row.verdict, told["verdict"]) == ("not_met", "not_met") and "was right until" in told["reason"]
    assert verdicts(judge_pack(before, gathered, date(2025, 8, 1)))["deposit_protection"] == "met"


def test_a_phrase_that_has_to_be_spoken_is_looked_for_in_sound_alone(pack: RulePack) -> None:
    rule = next(one for one in pack.phrases if one.id == "read_terms")
    text = rule.texts[0]

    def judged(channel: str, gathered: Gathered) -> str:
        bound = rule.model_copy(update={"channel": channel, "texts": (text,)})
        one = dataclasses.replace(pack, phrases=(bound,), stale=(), forbidden=(), seal=None)
        rows = judge_pack(one, gathered, date(2026, 11, 1)).rows
        return rows[0].became.state if rows else "not judged"

    shown, spoken = Gathered(read_video(text)), Gathered(read_video(OTHER), read_sound(text))
    assert [judged("spoken", one) for one in (shown, spoken)] == ["missing", "present"]
    assert [judged("shown", one) for one in (shown, spoken)] == ["present", "missing"]
    assert [judged("any", one) for one in (shown, spoken)] == ["present", "present"]
    assert judged("spoken", Gathered(read_text(text))) == "not judged", "nothing is spoken in a text"


def test_a_phrase_of_the_caller_that_the_pack_knows_bears_its_name(pack: RulePack) -> None:
    known = next(one for one in pack.phrases if one.id == "read_terms").texts[0]
    rows = judge_asked([known, OTHER], pack, Gathered(read_text(known))).rows
    assert [row.rule.id if row.rule else None for row in rows] == ["read_terms", None]
    assert [row.finding.rule for row in rows if row.finding] == ["read_terms", "asked_2"]
    assert [row.finding.basis for row in rows if row.finding] == ["practice", "house"]


def test_without_a_letter_read_nothing_is_judged(pack: RulePack) -> None:
    for gathered in (Gathered(read_text("", " ")), Gathered(read_sound())):
        assert asked(pack, gathered).state == "cannot_tell"
        assert "not_met" not in verdicts(judge_pack(pack, gathered, date(2026, 11, 1))).values()


def test_what_was_not_read_is_said_in_sentences() -> None:
    done, partly = ReadPage(1, "done"), ReadPage(2, "done", unread=(Unread("ink", (0, 0, 5, 5)),))
    failed = [ReadPage(number, "failed", reason="pdf_damaged: no") for number in (3, 4)]
    pages = (done, partly, *failed, ReadPage(5, "unreached", reason="not reached yet"))
    document = dataclasses.replace(read_text(), reading=Reading("pdf", "pt", pages))
    assert unread_sentences(Gathered(document)) == (
        "page 2: there is print that nobody could read",
        "pages 3-4: failed (pdf_damaged: no)",
        "page 5: unreached (not reached yet)",
    )
    sound = read_sound(OTHER, unread=[Unread("noise", start_s=1.0, end_s=2.0), Unread("noise", start_s=3.0, end_s=4.0)])
    assert unread_sentences(Gathered(read_video(OTHER), sound)) == ("noise (2 places)",)
    assert unread_sentences(Gathered(read_video(OTHER), None, "damaged")) == ("the sound of the video: damaged",)


def test_how_a_notice_is_spoken_is_judged_also_where_it_is_shown(pack: RulePack) -> None:
    rule = next(one for one in pack.phrases if one.id == "read_terms").model_copy(update={"channel": "any"})
    said, shown = rule.texts[0], rule.texts[1]
    rules = SpeechRules(basis="house", note="ours", max_rate_ratio=1.2, while_shown=True)
    one = dataclasses.replace(pack, phrases=(rule,), stale=(), forbidden=(), seal=None, video=None, speech=rules)

    def told(*frames: str) -> dict[str, str]:
        gathered = Gathered(read_video(*frames), read_sound(OTHER, said))
        judged = judge_pack(one, gathered, date(2026, 11, 1))
        return {found.rule: found.verdict for found in minimum_findings(one, judged, RuleChecks((), {}), gathered)}

    assert told(*[shown] * 12) == {"speech.max_rate_ratio": "not_met", "speech.while_shown": "met"}
    assert told(*[OTHER] * 12) == {"speech.max_rate_ratio": "not_met", "speech.while_shown": "not_met"}
