"""Words that must not stand in a document, looked for in what was read of it.

Owns the slots of such words and what the company they stand in changes. A word that was not found is only called absent
over a whole reading. Refuses free patterns: what a rule pack says is taken literally, so none can run away. Pure.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sam2_mcp_worker.checks.findings import Finding, Verdict
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.checks.rule_packs.schema import ForbiddenRule
from sam2_mcp_worker.checks.squeezed import BREAK, Squeezed, squeeze, squeezed
from sam2_mcp_worker.checks.unread import unread_reason

# How far away a word still says what another one means, in characters without spaces: a clause of Korean has some 20.
NEAR_CHARS = 20
# What takes the meaning away stands closer ("입원 1일당 3만원 지급").
UNLESS_CHARS = 12
# Shorter words are not put together from the end of one line and the beginning of the next.
BROKEN_FROM_CHARS = 5
# Places of one rule on one page that are told one by one; what is beyond them is a matter of the same rule.
MAX_PLACES = 5
READ_CHARS = 40
# Points and commas within numbers end nothing.
_CLAUSE_ENDS = re.compile(r"[\n;/|·•]|[,.](?!\d)")
# A line may end within a sentence; what the next sentence says takes nothing back.
_SENTENCE_ENDS = re.compile(r"[!?;。]|\.(?!\d)|(?<!\d)\.")
_MONEY = "원|달러|유로|엔|위안|krw|usd|eur|won|dollars?"
# "천원", "삼백원", "만원".
_IN_WORDS = "[일이삼사오육칠팔구]?[십백천만][일이삼사오육칠팔구십백천만억]{0,6}원"
SLOTS = {
    "{amount}": rf"(?:[$€£¥₩]\d[\d,.]{{0,15}}|\d[\d,.]{{0,15}}[십백천만억조]{{0,4}}(?:{_MONEY})|{_IN_WORDS})",
    "{number}": r"\d[\d,.]{0,15}",
}
# A slot counts as the shortest sum of money does ("50원").
SLOT_CHARS = 3
RULE = "forbidden"
"""Stands for all rules together where it is not known whether one of their words stands there."""


@dataclass(frozen=True, slots=True)
class _Place:
    page: ReadPage
    line: ReadLine
    read_as: str
    verdict: Verdict


def forbidden_findings(rules: Sequence[ForbiddenRule], reading: Reading) -> tuple[Finding, ...]:
    """A finding for each place of each rule; for rules without one that they are met, or that this is not known."""
    if not rules:
        return ()
    texts = [(page, squeezed([line.text for line in page.lines])) for page in reading.pages if page.lines]
    found: list[Finding] = []
    clear: list[ForbiddenRule] = []
    for rule in rules:
        places = [place for page, text in texts for place in _places(rule, page, text)]
        found += [_told(rule, place) for place in places]
        if not places:
            clear.append(rule)
    return (*found, *_absent(clear, unread_reason(reading)))


def _places(rule: ForbiddenRule, page: ReadPage, text: Squeezed) -> list[_Place]:
    """The places of a page, one a line, those that are surely wrong first."""
    best: dict[int, _Place] = {}
    for match in pattern_of(rule.words).finditer(text.text):
        if text.cuts(*match.span()):
            continue
        verdict = _verdict(rule, text, match.start(), match.end())
        index = text.line_of(match.start())
        if verdict is not None and (index not in best or verdict == "not_met"):
            read_as = match[0].replace(BREAK, " ")[:READ_CHARS]
            best[index] = _Place(page, page.lines[index], read_as, verdict)
    return sorted(best.values(), key=lambda place: place.verdict != "not_met")[:MAX_PLACES]


def _verdict(rule: ForbiddenRule, text: Squeezed, start: int, end: int) -> Verdict | None:
    excused = _holds(rule.unless, _near(text.text, start, end, UNLESS_CHARS, _SENTENCE_ENDS))
    sure = rule.sure or _holds(rule.sure_near, _near(text.text, start, end, NEAR_CHARS, _CLAUSE_ENDS))
    if excused:
        return "review" if sure and not rule.sure else None
    return "not_met" if sure else "review"


def _near(text: str, start: int, end: int, reach: int, ends: re.Pattern[str]) -> str:
    """A place with what stands near by in its own clause or sentence: a price in the next line is another matter."""
    before = ends.split(text[max(0, start - reach) : start])[-1]
    behind = ends.split(text[end : end + reach])[0]
    return before + text[start:end] + behind


def _holds(words: tuple[str, ...], text: str) -> bool:
    return bool(words) and pattern_of(words).search(text.replace(BREAK, "")) is not None


@functools.lru_cache(maxsize=256)
def pattern_of(words: tuple[str, ...]) -> re.Pattern[str]:
    """The words as one pattern over squeezed text: literal characters and bounded slots only, the longest first."""
    ordered = sorted(words, key=len, reverse=True)
    return re.compile("|".join(_literal(word) for word in ordered))


def _literal(word: str) -> str:
    parts = [part for part in re.split(r"(\{amount\}|\{number\})", word) if part]
    letters = sum(SLOT_CHARS if part in SLOTS else len(squeeze(part)) for part in parts)
    gap = f"{BREAK}?" if letters >= BROKEN_FROM_CHARS else ""
    return gap.join(SLOTS.get(part) or gap.join(map(re.escape, squeeze(part))) for part in parts)


def _told(rule: ForbiddenRule, place: _Place) -> Finding:
    line = place.line
    doubt = "" if place.verdict == "not_met" else "; whether it is meant so here is for a person to look at"
    return Finding(
        kind="forbidden_wording",
        rule=rule.id,
        verdict=place.verdict,
        what=f'"{place.read_as}" stands there{doubt}',
        basis=rule.basis,
        page=place.page.number,
        box_xyxy=line.box_xyxy,
        start_s=line.start_s,
        end_s=line.end_s,
    )


def _absent(rules: Sequence[ForbiddenRule], unread: str) -> Iterator[Finding]:
    if unread and rules:
        what = f"the words of {len(rules)} rules were not found, but {unread}"
        yield Finding("forbidden_wording", RULE, "cannot_tell", what, rules[0].basis)
        return
    for rule in rules:
        yield Finding("forbidden_wording", rule.id, "met", "none of its words was found in this sense", rule.basis)
