"""Units behind numbers that are the same: "90일" and "90년" are not, however alike the rest.

Owns when two units of one number say something else. Which numbers are the same is told by phrase_tokens.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rapidfuzz import fuzz

from sam2_mcp_worker.checks.figures.units import UNIT_PATTERN, Unit, unit_of
from sam2_mcp_worker.checks.phrase_letters import letters
from sam2_mcp_worker.checks.phrase_tokens import Token

_BEHIND = re.compile(rf"\s?(?:{UNIT_PATTERN})")
# Also a line may end within a unit ("3개" above "월"), which has six characters at most with what may not follow it.
_REACH_CHARS = 8
# What is measured so is never the same in another one of them. Counts have many names ("1인당", "1명당").
_MEASURED = ("percent", "amount", "age", "period")
# Units that share this much of their letters may be slips of one another: "원" and "엔".
_LOOK_ALIKE = 50.0


def other_units(
    wanted: str, tokens: Sequence[Token], text: str, found: Sequence[Token], *, slips: bool
) -> tuple[str, ...]:
    """Numbers of a phrase that stand in a text in another unit, "90일 -> 90년" each; units may not be read at all.

    Nothing where the tokens differ themselves. With `slips` units that look alike are not told.
    """
    if [token.value for token in tokens] != [token.value for token in found]:
        return ()
    said = (_differing(wanted, one, text, other, slips) for one, other in zip(tokens, found, strict=True))
    return tuple(one for one in said if one)


def _differing(wanted: str, token: Token, text: str, other: Token, slips: bool) -> str:
    unit, stands = _unit(wanted, token), _unit(text, other)
    if unit is None or stands is None or not _tells_apart(unit, stands) or (slips and _may_be_slip(unit, stands)):
        return ""
    joined = text[: other.end] + text[other.end : other.end + _REACH_CHARS].replace("\n", "")
    return "" if _unit(joined, other) == unit else f"{token.text}{unit.name} -> {token.text}{stands.name}"


def _unit(text: str, token: Token) -> Unit | None:
    """The unit right behind a number; None of a negation, and where none is known."""
    match = None if token.negation else _BEHIND.match(text, token.end)
    return unit_of(match.groupdict()) if match else None


def _tells_apart(unit: Unit, other: Unit) -> bool:
    return unit != other and (unit.kind in _MEASURED or other.kind in _MEASURED)


def _may_be_slip(unit: Unit, other: Unit) -> bool:
    """Whether one may have been read as the other: "개월" as "개", with its end as anything; a sign is no syllable."""
    if other.kind not in _MEASURED and unit.kind != "percent":
        return True
    same_length = len(unit.name) == len(other.name)
    return same_length and fuzz.ratio(letters(unit.name), letters(other.name)) >= _LOOK_ALIKE
