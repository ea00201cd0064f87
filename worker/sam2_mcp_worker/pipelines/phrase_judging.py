"""Phrases and the other wordings of a rule pack held against everything that was read of a document. Pure.

Owns which judge is asked about what: pages and texts by checks/phrase_judge.py, frames of videos by video_findings.py,
speech by the first again. Takes up to seconds for long documents: call it in a thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from sam2_mcp_worker.checks.findings import Finding, FindingKind, Verdict
from sam2_mcp_worker.checks.forbidden_wording import forbidden_findings
from sam2_mcp_worker.checks.phrase_decoys import JudgedPhrase, judged_phrases
from sam2_mcp_worker.checks.phrase_judge import PhraseFinding, judge_phrases
from sam2_mcp_worker.checks.phrase_rules import best_of, phrase_findings, phrases_for, texts_of
from sam2_mcp_worker.checks.review_seal import seal_findings
from sam2_mcp_worker.checks.rule_packs import PhraseRule, RulePack
from sam2_mcp_worker.pipelines.gathered import Gathered
from sam2_mcp_worker.pipelines.phrase_channels import both, not_heard, not_spoken, of_screen, of_speech
from sam2_mcp_worker.pipelines.video_findings import VideoFindings, find_all

# The verdict that a state of a phrase is, and the kind of finding.
VERDICTS: dict[str, tuple[FindingKind, Verdict]] = {
    "present": ("phrase_missing", "met"),
    "altered": ("phrase_altered", "not_met"),
    "missing": ("phrase_missing", "not_met"),
    "review": ("phrase_missing", "review"),
    "cannot_tell": ("phrase_missing", "cannot_tell"),
}
NO_SOUND = "the video has no sound"
SO_FAR = "as far as the document was read by now"


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """A phrase with what became of it; `rule` is that of the pack, None for one that the caller asked for alone.

    `finding` is what counts for the label: None where the phrase was not needed, or where `stale`, the finding of an
    old wording in its place, says it already. `asked`: the caller named it.
    """

    phrase: str
    became: PhraseFinding
    rule: PhraseRule | None
    finding: Finding | None
    asked: bool = False
    stale: Finding | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """`rows` are the phrases, `others` findings of other wordings of the pack, `shown` all that a video showed.

    `said` is what was heard of each wording, also of those that are told by what the screen shows. `old` is what became
    of the old wordings among `others`, by their rule.
    """

    rows: tuple[JudgedRow, ...]
    others: tuple[Finding, ...] = ()
    shown: VideoFindings | None = None
    said: tuple[PhraseFinding, ...] = ()
    old: Mapping[str, PhraseFinding] = field(default_factory=dict)


def judge_asked(texts: Sequence[str], pack: RulePack, gathered: Gathered) -> Judgement:
    """The phrases that a caller asks for. One that the pack knows, too, is that rule; the others bind as it says."""
    others = texts_of(pack.phrases)
    judged, shown, _ = _judged(texts, others, gathered, {}, pack)
    known = {text: rule for rule in pack.phrases for text in rule.texts}
    rows = [_asked_row(number, judged[text], known.get(text)) for number, text in enumerate(texts, start=1)]
    return Judgement(tuple(rows), shown=shown)


def _asked_row(number: int, became: PhraseFinding, rule: PhraseRule | None) -> JudgedRow:
    kind, verdict = VERDICTS[became.state]
    name, basis = (rule.id, rule.basis) if rule is not None else (f"asked_{number}", "house")
    said = became.reason or f'"{became.read_as[:80]}" stands there'
    finding = Finding(
        kind=kind,
        rule=name,
        verdict=verdict,
        what=said,
        basis=basis,
        page=became.page_number,
        box_xyxy=became.boxes[0][1] if became.boxes else None,
        start_s=became.start_s,
        end_s=became.end_s,
    )
    return JudgedRow(became.phrase, became, rule, finding, asked=True)


def so_far(judgement: Judgement) -> Judgement:
    """The judgement of a document that is still being read: what is altered here may stand right on a later page."""

    def open_still(row: JudgedRow) -> JudgedRow:
        if row.became.state != "altered":
            return row
        reason = "; ".join(part for part in (SO_FAR, row.became.reason) if part)
        finding = replace(row.finding, verdict="review", what=reason) if row.finding is not None else None
        return replace(row, became=replace(row.became, reason=reason), finding=finding)

    return replace(judgement, rows=tuple(map(open_still, judgement.rows)))


def not_judged(texts: Sequence[str], pack: RulePack, gathered: Gathered, why: str) -> Judgement:
    """Every phrase that was asked for, or is in the pack, as one of which nothing is known yet."""
    if texts:
        rows = [_asked_row(number, not_heard(text, why), None) for number, text in enumerate(texts, start=1)]
        return Judgement(tuple(rows))
    rules = phrases_for(pack, gathered.main.reading.kind)
    return Judgement(tuple(JudgedRow(rule.texts[0], not_heard(rule.texts[0], why), rule, None) for rule in rules))


def judge_pack(pack: RulePack, gathered: Gathered, day: date) -> Judgement:
    """The whole pack, which is that of the day: phrases, stale and forbidden wordings, the mark of the review."""
    reading = gathered.joined
    rules = phrases_for(pack, gathered.main.reading.kind)
    mandatory = texts_of(rules)
    channels = {text: rule.channel for rule in rules for text in rule.texts}
    judged, shown, said = _judged(mandatory, (), gathered, channels, pack)
    # Apart from the others: an old wording is no decoy of the one that holds now.
    stale, *_ = _judged(texts_of(pack.stale), mandatory, gathered, {}, pack)
    found = phrase_findings(replace(pack, phrases=rules), {**stale, **judged}, reading)
    by_rule = {finding.rule: finding for finding in found}
    in_place_of = {rule.instead: by_rule[rule.id] for rule in pack.stale if rule.id in by_rule}
    rows = [
        JudgedRow(best.phrase, best, rule, by_rule.get(rule.id), stale=in_place_of.get(rule.id))
        for rule in rules
        if (best := best_of(rule, judged)) is not None
    ]
    told = {rule.id for rule in rules}
    others = [finding for finding in found if finding.rule not in told]
    others += [one for part in gathered.readings for one in forbidden_findings(pack.forbidden, part)]
    if gathered.main.reading.kind != "sound":
        others += seal_findings(pack.seal, gathered.main.reading, day)
    outdated = {rule.id: best for rule in pack.stale if rule.id in by_rule and (best := best_of(rule, stale))}
    return Judgement(tuple(rows), tuple(others), shown, said, outdated)


def _judged(
    texts: Sequence[str],
    others: Sequence[str],
    gathered: Gathered,
    channels: Mapping[str, str],
    pack: RulePack,
) -> tuple[dict[str, PhraseFinding], VideoFindings | None, tuple[PhraseFinding, ...]]:
    """What became of each text; of a video also all that it showed; what was heard. `others` are decoys."""
    main, ready = gathered.main, judged_phrases(texts, others)
    if main.video is None:
        low_quality = main.transcript is not None and main.transcript.low_quality
        found = tuple(of_speech(one, low_quality=low_quality) for one in judge_phrases(ready, main.reading))
        return dict(zip(texts, found, strict=True)), None, found if main.reading.kind == "sound" else ()
    shown = find_all(main.video.looks, texts, (), pack.video, others)
    on_screen = [of_screen(one) for one in shown.phrases]
    heard = _heard(texts, ready, gathered)
    told = {
        text: _of_channel(channels.get(text, "any"), *pair)
        for text, pair in zip(texts, zip(on_screen, heard, strict=True), strict=True)
    }
    return told, shown, tuple(one for one in heard if one is not None)


def _of_channel(channel: str, shown: PhraseFinding, said: PhraseFinding | None) -> PhraseFinding:
    """`said` is None for a video without sound: it has been gone through."""
    if channel == "shown":
        return shown
    if channel == "spoken":
        return said if said is not None else replace(not_spoken(shown.phrase), reason=NO_SOUND)
    return both(shown, said) if said is not None else shown


def _heard(texts: Sequence[str], ready: Sequence[JudgedPhrase], gathered: Gathered) -> Sequence[PhraseFinding | None]:
    sound = gathered.sound
    if gathered.sound_trouble:
        return [not_heard(text, f"its sound was not gone through ({gathered.sound_trouble})") for text in texts]
    if sound is None:
        return [None for _ in texts]
    if sound.reading.whole and not any(True for _ in sound.reading.lines()):
        return [not_spoken(text) for text in texts]
    low_quality = sound.transcript is not None and sound.transcript.low_quality
    return [of_speech(one, low_quality=low_quality) for one in judge_phrases(ready, sound.reading)]
