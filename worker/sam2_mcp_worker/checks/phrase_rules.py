"""Mandatory and stale wordings of a rule pack: from what became of each wording to findings.

Owns that one of several wordings is enough, when a phrase is needed, and that a wording which has gone out of date is
told as such. Refuses to judge whether a wording stands there (`phrase_judge`). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, Protocol, TypeVar

from sam2_mcp_worker.checks.findings import Finding, FindingKind, Verdict
from sam2_mcp_worker.checks.reading import Box, Kind, Reading
from sam2_mcp_worker.checks.rule_packs import PhraseRule, RulePack, StaleRule
from sam2_mcp_worker.checks.sign_slips import may_stand, misreadable
from sam2_mcp_worker.checks.squeezed import BREAK, squeeze, squeezed
from sam2_mcp_worker.checks.unread import unread_reason

# A syllable in front of a sign that turns it into its opposite: "비갱신형" is no sign of 갱신형.
TURNED = frozenset("비무미불")
# What denies it right behind it: "갱신형이 아닙니다", "갱신형 없음".
_DENIED = re.compile("[이가은는]?(?:아[니닌닐님닙]|없|제외)")
SHOWN_CHARS = 40

Applies = Literal["yes", "no", "not_known"]


class Judged(Protocol):
    """What became of one wording: what is needed here of `phrase_judge.PhraseFinding`."""

    @property
    def state(self) -> Literal["present", "altered", "missing", "review", "cannot_tell"]: ...
    @property
    def reason(self) -> str: ...
    @property
    def score(self) -> float: ...
    @property
    def read_as(self) -> str: ...
    @property
    def differences(self) -> tuple[str, ...]: ...
    @property
    def boxes(self) -> tuple[tuple[int, Box], ...]: ...
    @property
    def page_number(self) -> int | None: ...
    @property
    def start_s(self) -> float | None: ...
    @property
    def end_s(self) -> float | None: ...


AnyJudged = TypeVar("AnyJudged", bound=Judged)


def phrases_for(pack: RulePack, kind: Kind) -> tuple[PhraseRule, ...]:
    """The mandatory phrases of a pack that a document of this kind can hold: nothing is shown in a sound."""
    silent = kind in ("text", "image", "pdf")
    barred = "spoken" if silent else "shown" if kind == "sound" else ""
    return tuple(rule for rule in pack.phrases if rule.channel != barred)


def texts_of(rules: Sequence[PhraseRule | StaleRule]) -> tuple[str, ...]:
    """All wordings of some rules, each once, in their order: what is to be judged."""
    return tuple(dict.fromkeys(text for rule in rules for text in rule.texts))


def applies(rule: PhraseRule, reading: Reading) -> Applies:
    """Whether a phrase is needed in a document, as far as the signs of its rule tell.

    No sign in a whole reading says that it is not; without signs nobody but a person knows, nor where one is put
    together from two lines, denied, or like something that may have been misread.
    """
    if rule.need == "always":
        return "yes"
    pages = [squeezed([line.text for line in page.lines]).text for page in reading.pages]
    found = [_stands(squeeze(sign), text) for sign in rule.signs for text in pages]
    if "yes" in found:
        return "yes"
    if not rule.signs or "not_known" in found or unread_reason(reading):
        return "not_known"
    read = misreadable(reading)
    return "not_known" if any(may_stand(sign, read) for sign in rule.signs) else "no"


def phrase_findings(pack: RulePack, judged: Mapping[str, Judged], reading: Reading) -> tuple[Finding, ...]:
    """The findings of the pack's phrases and stale wordings from what became of each wording, by its text.

    `pack` is that of the day (`RulePack.on`). Rules none of whose wordings was judged give nothing.
    """
    found = {rule.id: finding for rule in pack.phrases for finding in _of_phrase(rule, judged, reading)}
    current = {rule.id: best_of(rule, judged) for rule in pack.phrases}
    stale: list[Finding] = []
    for rule in pack.stale:
        best, instead = best_of(rule, judged), current.get(rule.instead)
        if best is None or not _is_stale(best, instead):
            continue
        stale.append(_of_stale(rule, best))
        if best.state == "present" and instead is not None and instead.state != "present":
            found.pop(rule.instead, None)  # said once: with what was right until when
    return (*found.values(), *stale)


def _is_stale(best: Judged, instead: Judged | None) -> bool:
    """A doubtful wording is only told as stale where the one that holds now is not as likely to stand there."""
    if best.state == "present":
        return True
    return best.state == "review" and (instead is None or (instead.state != "present" and instead.score < best.score))


def _of_phrase(rule: PhraseRule, judged: Mapping[str, Judged], reading: Reading) -> Iterator[Finding]:
    best = best_of(rule, judged)
    if best is None:
        return
    kind: FindingKind = "phrase_altered" if best.state == "altered" else "phrase_missing"
    if best.state == "present":
        yield _finding(rule, kind, "met", f'"{_short(best.read_as)}" stands there', best)
    elif best.state == "altered":
        yield _finding(rule, kind, "not_met", f"it stands there with changes: {', '.join(best.differences)}", best)
    elif applies(rule, reading) == "no":
        return
    elif best.state == "review":
        yield _finding(rule, kind, "review", f'"{_short(best.read_as)}" may be it: {best.reason}', best)
    else:
        yield _not_there(rule, best, needed=applies(rule, reading) == "yes")


def _not_there(rule: PhraseRule, best: Judged, *, needed: bool) -> Finding:
    """Of a phrase that was not found; where it is not known whether it is needed, for a person."""
    wordings = "its wording" if len(rule.texts) == 1 else f"each of its {len(rule.texts)} wordings"
    if best.state == "cannot_tell":
        return _finding(rule, "phrase_missing", "cannot_tell", f"{wordings} was not found: {best.reason}", best)
    what = f'{wordings} is missing ("{_short(rule.texts[0])}")'
    if not needed:
        return _finding(rule, "phrase_missing", "review", f"{what}; it is needed when {rule.when}", best)
    why = f"; it is needed since {rule.when}" if rule.when else ""
    return _finding(rule, "phrase_missing", "not_met", f"{what}{why}", best)


def _of_stale(rule: StaleRule, best: Judged) -> Finding:
    until = rule.held_until.isoformat()
    if best.state == "present":
        return _finding(rule, "phrase_stale", "not_met", f'"{_short(best.read_as)}" was right until {until}', best)
    what = f'"{_short(best.read_as)}" may be what was right until {until}: {best.reason}'
    return _finding(rule, "phrase_stale", "review", what, best)


def best_of(rule: PhraseRule | StaleRule, judged: Mapping[str, AnyJudged]) -> AnyJudged | None:
    """What became of the wording that is there most."""
    ranks = {"present": 3, "altered": 2, "review": 2, "cannot_tell": 1, "missing": 0}
    known = [judged[text] for text in rule.texts if text in judged]
    return max(known, key=lambda one: (ranks[one.state], one.score), default=None)


def _stands(sign: str, text: str) -> Applies:
    """Whether a sign stands in squeezed text."""
    joined = text.replace(BREAK, "")
    meant, whole = _meant(sign, joined), _meant(sign, text)
    denied = sum(_DENIED.match(joined, at + len(sign)) is not None for at in meant)
    if min(len(meant), len(whole)) > denied:
        return "yes"
    return "not_known" if meant else "no"


def _meant(sign: str, text: str) -> list[int]:
    """Where a sign begins that nothing in front of it turns into its opposite."""
    places = (match.start() for match in re.finditer(re.escape(sign), text))
    return [at for at in places if at == 0 or text[at - 1] not in TURNED]


def _finding(rule: PhraseRule | StaleRule, kind: FindingKind, verdict: Verdict, what: str, judged: Judged) -> Finding:
    box = judged.boxes[0][1] if judged.boxes else None
    return Finding(
        kind=kind,
        rule=rule.id,
        verdict=verdict,
        what=what,
        basis=rule.basis,
        page=judged.page_number,
        box_xyxy=box,
        start_s=judged.start_s,
        end_s=judged.end_s,
    )


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 3]}..."
