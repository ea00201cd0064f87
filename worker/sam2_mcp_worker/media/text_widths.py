"""How wide text runs, roughly and without its font. Pure: owns the widths of kinds of characters, knows no picture."""

from __future__ import annotations

import unicodedata

from sam2_mcp_worker.media.text_height import Symbol

# Advances in em: means over ten Nanum faces (Gothic, BarunGothic, Myeongjo, Square and SquareRound, regular and bold),
# which differ by 10 %.
FULL_WIDTH_EM = 0.92
SPACE_EM = 0.26
NARROW_EM = 0.33
CAPITAL_EM = 0.68
OTHER_EM = 0.58
NARROW = frozenset(".,:;!'|()[]{}iIjl·`\"")


def character_em(character: str) -> float:
    """The advance of one character in em."""
    if character.isspace():
        return SPACE_EM
    if unicodedata.east_asian_width(character) in "WFA":
        return FULL_WIDTH_EM
    if character in NARROW:
        return NARROW_EM
    return CAPITAL_EM if character.isupper() else OTHER_EM


def width_em(text: str) -> float:
    """The width of a text in em."""
    return sum(map(character_em, text))


def symbols_along(text: str, columns: int) -> list[Symbol]:
    """The characters of `text` where they stand if it fills all columns of a crop."""
    whole = max(width_em(text), NARROW_EM)
    symbols: list[Symbol] = []
    at, after_space = 0.0, False
    for character in text:
        advance = character_em(character)
        if not character.isspace():
            x0, x1 = (round(columns * edge / whole) for edge in (at, at + advance))
            symbols.append(Symbol(character, x0, x1, starts_word=after_space))
        at, after_space = at + advance, character.isspace()
    return symbols
