"""Closed lists of labels: what a caller may ask for, checked. Knows neither engines nor where the labels come from.

Labels stand in a prompt and in the schema of an answer, so whatever could break a line there, or look like another
label, is refused instead of repaired.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from sam2_mcp_worker.errors import WorkerError

# Each label with its definition costs about 30 tokens in the prompt of every tile, and longer lists make models choose
# worse between neighbours.
MAX_LABELS = 20
# A label is a name, not a sentence: `person holding banknotes` has 24.
MAX_LABEL_CHARS = 60
MAX_DEFINITION_CHARS = 240
DEFAULT = "default"
"""The word that stands for the labels of the rule pack."""

# Control, format (bidirectional overrides, zero-width), surrogate, private and unassigned characters; line separators.
_REFUSED_CATEGORIES = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
# Letters and marks that are drawn as nothing: Hangul and Khmer fillers, joiners, variation selectors.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_SHOWN_CHARS = 40


@dataclass(frozen=True, slots=True)
class Label:
    """A name from a closed list, and what it covers ("" where the name says it all)."""

    name: str
    definition: str = ""


def checked_labels(names: Sequence[str], pack: Sequence[Label]) -> tuple[Label, ...]:
    """The labels that the names stand for, in their order; none for no names.

    `default` stands for all labels of the pack. A name that the pack has brings its definition along.

    Raises:
        WorkerError: label_invalid, label_twice, too_many_labels.
    """
    known = {_folded(label.name): label for label in pack}
    labels: list[Label] = []
    for given in names:
        name = _checked_name(given)
        if _folded(name) == DEFAULT:
            labels += pack
        else:
            labels.append(known.get(_folded(name), Label(name)))
    _check_number(labels)
    return tuple(labels)


def check_text(text: str, what: str, max_chars: int) -> str:
    """One line of text for a prompt, trimmed, composed (NFC) and with single spaces.

    Raises:
        WorkerError: label_invalid: empty, too long, or with characters that nobody sees.
    """
    for character in text:
        if unicodedata.category(character) in _REFUSED_CATEGORIES or _INVISIBLE.match(character):
            shown = text[:_SHOWN_CHARS].encode("ascii", "backslashreplace").decode("ascii")
            raise _invalid(f"{what} {shown!r} holds the character U+{ord(character):04X}", max_chars)
    clean = " ".join(unicodedata.normalize("NFC", text).split())
    if not clean:
        raise _invalid(f"{what} is empty", max_chars)
    if len(clean) > max_chars:
        raise _invalid(f"{what} {clean[:_SHOWN_CHARS]!r}... has {len(clean)} characters", max_chars)
    return clean


def _checked_name(given: str) -> str:
    name = check_text(given, "a label", MAX_LABEL_CHARS)
    if not any(character.isalnum() for character in name):
        raise _invalid(f"the label {name!r} holds neither a letter nor a digit", MAX_LABEL_CHARS)
    return name


def _check_number(labels: Sequence[Label]) -> None:
    seen: set[str] = set()
    for label in labels:
        folded = _folded(label.name)
        if folded in seen:
            raise WorkerError(
                "label_twice",
                f"the label {label.name!r} is there twice",
                rule="labels are a closed list; upper and lower case, wide and narrow letters are alike",
                next_step="name each label once; 'default' brings those of the rule pack along",
            )
        seen.add(folded)
    if len(labels) > MAX_LABELS:
        raise WorkerError(
            "too_many_labels",
            f"{len(labels)} labels were asked for",
            rule=f"at most {MAX_LABELS} in one call",
            next_step="ask for the rest in a further call",
        )


def _folded(name: str) -> str:
    """Alike for labels that look alike: case, and the wide and ligated forms of the same letters."""
    return unicodedata.normalize("NFKC", name).casefold()


def _invalid(what: str, max_chars: int) -> WorkerError:
    return WorkerError(
        "label_invalid",
        what,
        rule=f"1-{max_chars} visible characters on one line",
        next_step="name what is to be found in a few words, e.g. 'coin' or 'product name'",
    )
