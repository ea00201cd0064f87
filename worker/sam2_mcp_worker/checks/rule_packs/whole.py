"""Whether the entries of a rule pack go together: ids, references, validities, the verdict table.

Owns what makes a pack unusable though each entry is right by itself. What is only doubtful is a matter of `rule_lint`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from itertools import combinations

from sam2_mcp_worker.checks.rule_packs.schema import Dated, PackFile
from sam2_mcp_worker.checks.rule_packs.sections import Sourced

SLOTS = ("{amount}", "{number}")
# Each more makes the search 16 times as slow where a long number stands: four took 7 s for 2,000 digits.
MAX_SLOTS = 2
# Findings of sections bear their names; "forbidden" and "figures" stand for all rules of those together.
TAKEN = frozenset(("seal", "text", "contrast", "files", "speech", "video", "forbidden", "figures"))
_BRACED = re.compile(r"\{[^{}]*\}?|\}")
_SEVERITY = {"approve": 0, "conditional": 1, "reject": 2}


def mistakes(pack: PackFile) -> Iterator[str]:
    """What is wrong with the whole, each with the place where it stands."""
    yield from _ids(pack)
    yield from _sources(pack)
    yield from _references(pack)
    yield from _words(pack)
    yield from _verdict(pack)


def together(one: Dated, other: Dated) -> bool:
    """Whether there is a day on which both hold."""
    start = max(one.valid_from or date.min, other.valid_from or date.min)
    return start <= min(one.valid_until or date.max, other.valid_until or date.max)


def rules_of(pack: PackFile) -> tuple[tuple[str, Dated], ...]:
    """Every rule with an id, with the name of its section."""
    return (
        *(("phrases", rule) for rule in pack.phrases),
        *(("stale", rule) for rule in pack.stale),
        *(("forbidden", rule) for rule in pack.forbidden),
    )


def sourced_of(pack: PackFile) -> tuple[tuple[str, Sourced], ...]:
    """Everything that names its source, with the place where it stands."""
    sections = {name: getattr(pack, name) for name in ("seal", "text", "contrast", "files", "speech", "video")}
    if pack.seal is not None:
        sections["seal.format"] = pack.seal.format
    given = ((name, section) for name, section in sections.items() if section is not None)
    return (*((f"{name}.{rule.id}", rule) for name, rule in rules_of(pack)), *given)


def _ids(pack: PackFile) -> Iterator[str]:
    """One id may stand for a rule as it was and as it is; on no day for two."""
    yield from (
        f"{name}.{rule.id}: the name of a section is no id" for name, rule in rules_of(pack) if rule.id in TAKEN
    )
    for (name, one), (other_name, other) in combinations(rules_of(pack), 2):
        if one.id != other.id:
            continue
        if name != other_name:
            yield f"{other_name}.{other.id}: {name} has a rule of this id, too"
        elif together(one, other):
            yield f"{name}.{one.id}: two rules of this id hold on the same day; give valid_until and valid_from"
    for name, ids in (("laws", [law.id for law in pack.laws]), ("verdict.rooms", [r.id for r in pack.verdict.rooms])):
        yield from (f"{name}.{one}: stands there twice" for one in sorted({i for i in ids if ids.count(i) > 1}))


def _sources(pack: PackFile) -> Iterator[str]:
    known = {law.id for law in pack.laws}
    for place, rule in sourced_of(pack):
        if rule.law and rule.law not in known:
            yield f"{place}: there is no law {rule.law!r} in [[laws]]"


def _references(pack: PackFile) -> Iterator[str]:
    for stale in pack.stale:
        after = [rule for rule in pack.phrases if rule.id == stale.instead]
        if not after:
            yield f"stale.{stale.id}: there is no phrase {stale.instead!r} that holds instead"
        for rule in after:
            if rule.valid_until is not None and rule.valid_until <= stale.held_until:
                continue
            for text in sorted(set(rule.texts) & set(stale.texts)):
                yield f'stale.{stale.id}: "{text[:40]}" is what phrases.{rule.id} asks for after {stale.held_until}'


def _words(pack: PackFile) -> Iterator[str]:
    for rule in pack.forbidden:
        for word in (*rule.words, *rule.unless, *rule.sure_near):
            unknown = [part for part in _BRACED.findall(word) if part not in SLOTS]
            if unknown:
                yield f"forbidden.{rule.id}: {word!r} has {unknown[0]!r}; the slots are {' and '.join(SLOTS)}"
            elif not any(char.isalnum() for char in _BRACED.sub("", word)):
                yield f"forbidden.{rule.id}: {word!r} has no letter or digit of its own"
            elif sum(word.count(slot) for slot in SLOTS) > MAX_SLOTS:
                yield f"forbidden.{rule.id}: {word!r} has more than {MAX_SLOTS} slots"
    for place, text in _texts(pack):
        if not any(char.isalnum() for char in text):
            yield f"{place}: {text!r} has no letter or digit"


def _texts(pack: PackFile) -> Iterator[tuple[str, str]]:
    yield from ((f"phrases.{rule.id}", text) for rule in pack.phrases for text in (*rule.texts, *rule.signs))
    yield from ((f"stale.{rule.id}", text) for rule in pack.stale for text in rule.texts)
    yield from (("seal", name) for name in (pack.seal.names if pack.seal is not None else ()))


def _verdict(pack: PackFile) -> Iterator[str]:
    rooms = {room.id: room for room in pack.verdict.rooms}
    for number, row in enumerate(pack.verdict.rows, start=1):
        place, room = f"verdict.rows.{number}", rooms.get(row.room)
        if row.room and room is None:
            yield f"{place}: there is no room {row.room!r} in [[verdict.rooms]]"
        elif room is not None and _SEVERITY[room.may] >= _SEVERITY[row.label]:
            yield f"{place}: the room {row.room!r} may give {room.may}, which is not milder than {row.label}"
        elif room is not None and row.verdict == "cannot_tell" and room.may == "approve":
            yield f"{place}: the room {row.room!r} may give approve, and what is not known is never approved"
