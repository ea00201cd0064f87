"""Files that must be inside a document: those of the rule pack, and those of the document's own checklist. Pure.

Owns which lines are a checklist and when a name is that of a file. A document may name what comes along beside it, so
what its own list names and is not inside is for a person; what the rule pack asks for inside is missing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from sam2_mcp_worker.checks.findings import Finding, Verdict
from sam2_mcp_worker.checks.reading import Box, Reading
from sam2_mcp_worker.checks.rule_packs.sections import FileRules

# Words that stand behind the word of a checklist and belong to it.
_KINDS = "(?:서류|자료|파일|문서|목록|물|documents?|files?|list)?"
# A checklist is opened by a colon, a bracket or a number: "첨부된 약관을 읽고" is a sentence.
_OPENED = r"\s*(?:[:：\]】)〉>]|(?=\d{1,2}\s*[.):]))\s*"
_ITEM = re.compile(r"^\s*(?:\d{1,2}\s*[.)]|[①-⑳]|[□■☐☑☒✓✔▢◻◼●○•·\-]|\[[ xXvV✓]?\])\s*(?=\S)")
_BETWEEN = re.compile(r"[,、;/|]|(?<=\s)(?:및|and)\s|(?:^|\s)\d{1,2}\s*[.)]\s|[①-⑳□■☐☑☒]")
# "약관 1부", "1부.", "각 2매", "끝."
_COPIES = re.compile(r"(?:각\s*)?\d{0,3}\s*(?:부|매|장|copies|copy)\s*\.?\s*$|\s*끝\s*\.?\s*$")
# Shorter names stand in every file name.
_MIN_NAME_CHARS = 2
_MAX_NAME_CHARS = 60
_MAX_ITEMS = 40


@dataclass(frozen=True, slots=True)
class ListedName:
    """What a checklist in the document names, and where."""

    name: str
    page: int
    box_xyxy: Box | None = None


def listed_names(reading: Reading, words: Sequence[str]) -> tuple[ListedName, ...]:
    """The names in lists that a line beginning with one of `words` opens; items that follow below belong to it."""
    if not words:
        return ()
    word = "|".join(re.escape(one) for one in sorted(words, key=len, reverse=True))
    opening = re.compile(rf"^\s*[\[【(〈<※*#]*\s*(?:{word})\s*{_KINDS}{_OPENED}", re.IGNORECASE)
    found: list[ListedName] = []
    for page in reading.pages:
        inside = False
        for line in page.lines:
            text = unicodedata.normalize("NFC", line.text)
            opened = opening.match(text)
            inside = opened is not None or (inside and _ITEM.match(text) is not None)
            if inside:
                rest = text[opened.end() :] if opened else text
                found += (ListedName(name, page.number, line.box_xyxy) for name in _names(rest))
    return tuple(found[:_MAX_ITEMS])


def _names(text: str) -> list[str]:
    parts = (_without_copies(_ITEM.sub("", part)).strip(" .:：\"'()[]「」") for part in _BETWEEN.split(text))
    return [part for part in parts if _MIN_NAME_CHARS <= len(part) <= _MAX_NAME_CHARS]


def _without_copies(part: str) -> str:
    """Without what ends a list: "약관 1부. 끝." """
    while (shorter := _COPIES.sub("", part)) != part:
        part = shorter
    return part


def attachment_findings(
    rules: FileRules | None, attached: Sequence[str] | None, listed: Sequence[ListedName], *, may_hold_files: bool
) -> tuple[Finding, ...]:
    """The verdict for each file that the pack asks for, and for each that the document itself names.

    Args:
        attached: names of the files inside; None where they could not be listed.
        may_hold_files: whether files can be inside a document of this kind at all (a picture holds none).
    """
    if rules is None:
        return ()
    found = [_asked(rules, name, attached, may_hold_files) for name in rules.attachments]
    return tuple(found + [_listed(rules, one, attached) for one in listed])


def _asked(rules: FileRules, name: str, attached: Sequence[str] | None, may_hold_files: bool) -> Finding:
    verdict: Verdict = "met" if attached is not None and is_among(name, attached) else "not_met"
    what = f"the attached file {name!r} is {'there' if verdict == 'met' else 'missing'}"
    if attached is None:
        verdict, what = "cannot_tell", f"whether {name!r} is attached: the attached files could not be listed"
    elif not may_hold_files:
        verdict, what = "review", f"{name!r} must be attached; no files can be inside this one: did it come along?"
    return Finding("file_defect", "files.attachments", verdict, what, rules.basis)


def _listed(rules: FileRules, one: ListedName, attached: Sequence[str] | None) -> Finding:
    there = attached is not None and is_among(one.name, attached)
    what = f"the document names {one.name!r} as attached, and it is " + ("inside" if there else "not inside this file")
    return Finding(
        "file_defect",
        "files.checklist_words",
        "met" if there else "review",
        what if there else f"{what}: did it come along?",
        rules.basis,
        page=one.page,
        box_xyxy=one.box_xyxy,
    )


def is_among(name: str, files: Sequence[str]) -> bool:
    """Whether one of the files is called so, spaces, case, punctuation and what surrounds the name left aside."""
    wanted = _plain(name)
    return len(wanted) >= _MIN_NAME_CHARS and any(wanted in _plain(file) for file in files)


def _plain(text: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFKC", text).casefold() if sign.isalnum())
