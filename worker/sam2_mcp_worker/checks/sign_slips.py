"""Whether a sign of a rule may stand in text that was read by OCR or heard, with a slip: "갱싄형" for "갱신형". Pure.

Owns what counts as near enough for a person to look at. A sign that stands there as it is, is none of its matters.
"""

from __future__ import annotations

import re

from sam2_mcp_worker.checks.phrase_letters import letters
from sam2_mcp_worker.checks.phrase_places import letter_likeness
from sam2_mcp_worker.checks.phrases import SHORT_LETTERS
from sam2_mcp_worker.checks.reading import Reading

# One letter of nine ("갱신형") read as another leaves 0.89, two leave 0.78. In 1,800 lines of Korean about insurance no
# sign of the default pack resembles anything else by more than 0.846 ("환급금 예시" and "환급금에 기").
SIGN_LIKENESS = 0.85
# Shorter signs resemble ends of other words ("저해지" and "정해진" 0.83): of them one letter may be another in
# its place, and below this even that is in any text.
FEWEST_LETTERS = 6


def misreadable(reading: Reading) -> str:
    """All letters of what was read by OCR or heard, where a slip is possible."""
    return "".join(letters(line.text) for _, line in reading.lines() if line.source in ("ocr", "speech"))


def may_stand(sign: str, read: str) -> bool:
    """Whether something in these letters, beside the sign itself, resembles it; never of the shortest signs."""
    wanted = letters(sign)
    if len(wanted) < FEWEST_LETTERS:
        return False
    others = read.replace(wanted, "\0")
    if len(wanted) < SHORT_LETTERS:
        return re.search("|".join(_slips(wanted)), others) is not None
    return letter_likeness(wanted, others) >= SIGN_LIKENESS


def _slips(wanted: str) -> list[str]:
    """Patterns of the letters with any other in the place of one."""
    return [f"{re.escape(wanted[:at])}[^\0]{re.escape(wanted[at + 1 :])}" for at in range(len(wanted))]
