"""What may be a slip of reading: syllables that no text uses, and tokens that may only look like others.

Owns the look at single syllables and tokens of text that was read by OCR or heard.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections import Counter
from collections.abc import Sequence

from sam2_mcp_worker.checks.phrase_tokens import Token
from sam2_mcp_worker.checks.phrase_wording import AFFIRMATIONS, Alignment

# A syllable that was misread keeps some of its letters ("않" as "앉", "무" as "모").
_MISREAD_KEPT = 0.33
# Syllables that were misread as a negation keep half of them ("보" as "못").
_MISREAD_AS_NEGATION = 0.5
_UNITS = frozenset("십백천만억조")


@functools.lru_cache(maxsize=16384)  # there are 11,172
def is_usual(syllable: str) -> bool:
    """Whether a Hangul syllable is one of the 2,350 of KS X 1001, with which texts are written; others always are."""
    return not "가" <= syllable <= "힣" or len(syllable.encode("euc_kr")) == 2  # the rest is composed, 8 bytes


def odd_share(text: str) -> float:
    """The share of a text's Hangul syllables that no text uses, 0-1."""
    counts = Counter(text)
    syllables = [(char, count) for char, count in counts.items() if "가" <= char <= "힣"]
    odd = sum(count for char, count in syllables if not is_usual(char))
    return odd / sum(count for _, count in syllables) if syllables else 0.0


def certainly_other(wanted: Sequence[Token], laid: Alignment) -> bool:
    """Whether of the tokens that differ at a place one is no slip of reading."""
    found = laid.tokens
    matcher = difflib.SequenceMatcher(None, [one.value for one in wanted], [one.value for one in found], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal" and _certain(wanted[a:b], found[c:d], laid):
            return True
    return not any(kind != "equal" for kind, *_ in matcher.get_opcodes())


def _certain(lost: Sequence[Token], new: Sequence[Token], laid: Alignment) -> bool:
    if lost and _characters(lost) == _characters(new):  # "3,000" read as "3." and "000", "2026.07.01" as "2026,07,01"
        return False
    cut = [one for one in new if any(_cut(token, one, laid) or _digits_misread(token, one) for token in lost)]
    others = [one for one in new if one not in cut]
    if any(not one.negation or not _misread_as_negation(one, laid) for one in others):
        return True
    return any(_certainly_lost(token, laid) for token in lost if not (cut and not token.negation))


def _misread_as_negation(token: Token, laid: Alignment) -> bool:
    """Whether a negation stands where another syllable should: "못험료", "가없 나이"; but not "없" for "있"."""
    under, kept = laid.under(token)
    if kept == 1.0 or AFFIRMATIONS & set(under):
        return False
    return kept >= _MISREAD_AS_NEGATION or len(token.text) == len(under) == 1


def _cut(wanted: Token, found: Token, laid: Alignment) -> bool:
    """Whether a number only lacks units, and something stands in their place: "5천만" read as "5천맏"."""
    rest = wanted.text[len(found.text) :]
    less = wanted.text.startswith(found.text) and bool(rest) and set(rest) <= _UNITS
    return less and len(laid.stands_for(wanted)) >= len("".join(wanted.text.split()))


def _digits_misread(wanted: Token, found: Token) -> bool:
    """Whether a number differs in one digit that was read twice: "3,000" as "33000"."""
    before, after = _characters([wanted]), _characters([found])
    doubled = (at for at in range(1, len(after)) if after[at] == after[at - 1])
    return any(after[:at] + after[at + 1 :] == before for at in doubled)


def _characters(tokens: Sequence[Token]) -> str:
    """Digits and units, without what separates them."""
    return re.sub(r"[.,\s]", "", "".join(token.text for token in tokens))


def _certainly_lost(token: Token, laid: Alignment) -> bool:
    """Whether a token of the phrase is not there, and nothing that may be a misreading of it."""
    stands = laid.stands_for(token)
    if not token.negation:
        return False
    if not stands or AFFIRMATIONS & set(stands):
        return True
    return laid.kept(token) < _MISREAD_KEPT and odd_share(laid.text) == 0.0
