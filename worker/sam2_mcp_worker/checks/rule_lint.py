"""What is wrong or doubtful in a rule pack, for the people who write it.

Owns doubts: wordings that cannot be told apart, words that never decide anything, rules that have ended. What makes a
pack unusable is found when it is loaded (`rule_packs.whole`) and told here, too. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import combinations
from typing import Literal, get_args

from sam2_mcp_worker.checks.findings import FindingKind
from sam2_mcp_worker.checks.forbidden_wording import forbidden_findings
from sam2_mcp_worker.checks.phrase_letters import letters
from sam2_mcp_worker.checks.phrases import likeness, phrase_of
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.checks.rule_packs import PhraseRule, StaleRule, read_pack
from sam2_mcp_worker.checks.rule_packs.schema import PackFile
from sam2_mcp_worker.checks.rule_packs.whole import rules_of, sourced_of, together
from sam2_mcp_worker.checks.squeezed import squeeze

Level = Literal["error", "warning"]

# Wordings of two rules that are this alike are there or not there together: with 15 % of the syllables misread a phrase
# is 0.83 like itself (reference/vision.md 6).
TOO_ALIKE = 0.90
# Hangul taken apart: 10 to 12 syllables. Shorter wordings count only where hardly a letter is misread (checks/phrases).
SHORT_LETTERS = 24
# Words of one syllable stand in others by chance.
SHORT_WORD_CHARS = 2
_ARTICLE = re.compile(r"제\d+조(?:의\d+)?(?:제\d+항)?(?:제\d+호(?:의\d+)?)?(?:[가-하]목)?(?:\s?\d+\))?")
# Articles of other countries' laws are named in other ways.
_HANGUL = re.compile("[가-힣]")
_BESIDE = ("basis", "law", "article", "note", "applies_to", "near_border_px", "large_from_pt", "page_size_tolerance_mm")


@dataclass(frozen=True, slots=True)
class Problem:
    """An `error` makes the pack unusable, a `warning` is for its author. `what` begins with the place."""

    level: Level
    what: str


def lint(data: bytes, day: date) -> tuple[Problem, ...]:
    """The problems of the bytes of a pack's file; errors first. `day` is today: what has ended is told."""
    pack, wrong = read_pack(data)
    errors = [Problem("error", what) for what in wrong]
    if pack is None:
        return tuple(errors)
    doubts = (*_alike(pack), *_contradictions(pack), *_signs(pack), *_words(pack), *_days(pack, day))
    doubts = (*doubts, *_laws(pack, day), *_sections(pack), *_table(pack))
    return (*errors, *(Problem("warning", what) for what in doubts))


def _alike(pack: PackFile) -> Iterator[str]:
    """Wordings that the judge could take for one another. Other numbers are told apart, whatever the likeness."""
    rules: tuple[PhraseRule | StaleRule, ...] = (*pack.phrases, *pack.stale)
    texts = [(rule, text, phrase_of(text)) for rule in rules for text in rule.texts]
    for (one, first, phrase), (other, second, other_phrase) in combinations(texts, 2):
        if [token.value for token in phrase.tokens] != [token.value for token in other_phrase.tokens]:
            continue
        if one is other:
            if letters(first) == letters(second):
                yield f'{_named(one)}: "{first[:40]}" stands there twice'
        elif together(one, other) and not _succeeds(one, other) and likeness(phrase, second) >= TOO_ALIKE:
            yield f'{_named(one)} and {_named(other)}: "{first[:40]}" and "{second[:40]}" can hardly be told apart'


def _succeeds(one: PhraseRule | StaleRule, other: PhraseRule | StaleRule) -> bool:
    """A stale wording and the mandatory one of its time are the same, and never judged on the same day."""
    stale, phrase = (one, other) if isinstance(one, StaleRule) else (other, one)
    if not isinstance(stale, StaleRule) or not isinstance(phrase, PhraseRule):
        return False
    return phrase.valid_until is not None and phrase.valid_until <= stale.held_until


def _contradictions(pack: PackFile) -> Iterator[str]:
    """Mandatory wordings that hold forbidden words."""
    for phrase in pack.phrases:
        rules = [rule for rule in pack.forbidden if together(rule, phrase)]
        for text in phrase.texts:
            page = ReadPage(1, "done", (ReadLine(text, "text"),))
            for finding in forbidden_findings(rules, Reading("text", "line", (page,))):
                if finding.verdict != "met":
                    yield f"phrases.{phrase.id} and forbidden.{finding.rule}: {finding.what}"


def _signs(pack: PackFile) -> Iterator[str]:
    """Signs that stand in wordings which every document has: they say nothing."""
    always = [(rule, squeeze("".join(rule.texts))) for rule in pack.phrases if rule.need == "always"]
    for rule in pack.phrases:
        for sign in rule.signs:
            found = [other for other, text in always if squeeze(sign) in text]
            if found:
                yield f"phrases.{rule.id}: the sign {sign!r} stands in {_named(found[0])}, which is needed always"
        if rule.need == "when_it_applies" and not rule.signs:
            yield f"phrases.{rule.id}: it has no signs, so that whether it is needed is always for a person"


def _words(pack: PackFile) -> Iterator[str]:
    for rule in pack.phrases:
        for text in rule.texts:
            if len(letters(text)) < SHORT_LETTERS:
                yield f"phrases.{rule.id}: {text!r} is short: it must be read almost without a slip to be found"
    for forbidden in pack.forbidden:
        plain = [squeeze(word) for word in forbidden.words]
        for word, text in zip(forbidden.words, plain, strict=True):
            if len(text) < SHORT_WORD_CHARS:
                yield f"forbidden.{forbidden.id}: {word!r} is so short that it stands in other words by chance"
        for twice in sorted({text for text in plain if plain.count(text) > 1}):
            yield f"forbidden.{forbidden.id}: {twice!r} stands there twice (spaces and case do not count)"


def _days(pack: PackFile, day: date) -> Iterator[str]:
    for name, rule in rules_of(pack):
        later = [other for _, other in rules_of(pack) if other.id == rule.id and other is not rule]
        if rule.valid_until is not None and rule.valid_until < day and not later:
            yield f"{name}.{rule.id}: it has not held since {rule.valid_until}"
        following = [other for other in later if rule.valid_until and (other.valid_from or date.min) > rule.valid_until]
        starts = [other.valid_from for other in following if other.valid_from]
        if rule.valid_until and starts and (min(starts) - rule.valid_until).days > 1:
            yield f"{name}.{rule.id}: nothing holds between {rule.valid_until} and {min(starts)}"
    for stale in pack.stale:
        if not any(rule.id == stale.instead and rule.valid_until is None for rule in pack.phrases):
            yield f"stale.{stale.id}: no phrase {stale.instead!r} without an end holds instead"


def _laws(pack: PackFile, day: date) -> Iterator[str]:
    used = {rule.law for _, rule in sourced_of(pack)}
    for law in pack.laws:
        if law.id not in used:
            yield f"laws.{law.id}: no rule names it"
        if law.in_force > day:
            yield f"laws.{law.id}: this version is not in force before {law.in_force}"
    korean = {law.id for law in pack.laws if _HANGUL.search(law.title)}
    for place, rule in sourced_of(pack):
        parts = rule.article.split(",") if rule.article else []
        for part in parts:
            if rule.law in korean and not _ARTICLE.fullmatch(part.strip()):
                yield f"{place}: {part.strip()!r} is no article as they are named (제22조제4항제1호다목)"


def _sections(pack: PackFile) -> Iterator[str]:
    """Sections that ask for nothing."""
    for place, rule in sourced_of(pack):
        if place not in ("text", "contrast", "files", "speech", "video"):
            continue
        asked = {name: field for name, field in type(rule).model_fields.items() if name not in _BESIDE}
        if all(getattr(rule, name) == field.default for name, field in asked.items()):
            yield f"{place}: it asks for nothing"


def _table(pack: PackFile) -> Iterator[str]:
    rows = pack.verdict.rows
    for (first, one), (second, other) in combinations(enumerate(rows, start=1), 2):
        if (one.kind, one.verdict, one.basis, one.at_least) == (other.kind, other.verdict, other.basis, other.at_least):
            yield f"verdict.rows.{second}: it speaks of the same as verdict.rows.{first}"
    used = {row.room for row in rows}
    for room in pack.verdict.rooms:
        if room.id not in used:
            yield f"verdict.rooms.{room.id}: no row leads there"
    if rows and not any(row.kind == "any" for row in rows):
        spoken = {row.kind for row in rows if row.verdict == "not_met"}
        silent = [kind for kind in get_args(FindingKind) if kind not in spoken]
        if silent:
            yield f"verdict.rows: no row speaks of {', '.join(silent)} not_met: they are conditional"


def _named(rule: PhraseRule | StaleRule) -> str:
    return f"{'stale' if isinstance(rule, StaleRule) else 'phrases'}.{rule.id}"
