"""Whether a phrase may stand there with its numbers and dates in another writing: "5천만원" as "50,000,000원".

Owns the plain form in which such writings are the same. Only asked before a phrase is called missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sam2_mcp_worker.checks.phrase_letters import composed_of, letters
from sam2_mcp_worker.checks.phrase_pages import Passage
from sam2_mcp_worker.checks.phrase_places import letter_likeness
from sam2_mcp_worker.checks.phrase_tokens import Token, tokens_of
from sam2_mcp_worker.checks.phrases import Phrase, present_from

# Numbers are told apart from their neighbours, as "1" and "15" are.
_APART = "\1"
# "2026년 7월 1일", "2026.07.01." and "2026-7-1", of which the numbers are plain already.
_DATE = re.compile(
    rf"({_APART}\d{{4}}{_APART})\s?[년.\-/]\s?({_APART}\d+{_APART})\s?[월.\-/]\s?({_APART}\d+{_APART})\s?[일.]?"
)


def stands_rewritten(phrase: Phrase, passages: Sequence[Passage]) -> bool:
    """Whether it does in one of some passages; never of a phrase without numbers."""
    values = {token.value for token in phrase.tokens if not token.negation}
    if not values:
        return False
    text = composed_of(phrase.text)
    wanted = letters(_plain(text, tokens_of(text)))
    at_least = present_from(len(wanted))
    return any(
        letter_likeness(wanted, letters(_plain(passage.read.text, passage.read.tokens))) >= at_least
        for passage in passages
        if values <= {token.value for token in passage.read.tokens}
    )


def _plain(text: str, tokens: Sequence[Token]) -> str:
    """The text with the values of its numbers instead of these, and its dates without what parts them."""
    parts: list[str] = []
    at = 0
    for token in tokens:
        if not token.negation:
            parts += [text[at : token.start], f"{_APART}{token.value}{_APART}"]
            at = token.end
    return _DATE.sub(r"\1\2\3", "".join([*parts, text[at:]]))
