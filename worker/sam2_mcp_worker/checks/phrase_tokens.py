"""What no score of likeness sees: numbers, amounts, dates and negations, taken out of a text to be compared exactly.

"1억원" and "5천만원", "제한될 수 있습니다" and "제한되지 않습니다" are 79 to 96 % alike (reference/vision.md 6).
Owns what such a token is and when two are the same. Knows no phrases and no lines.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sam2_mcp_worker.checks.amounts import AMOUNT, SPELLED, amount_value, letters_as_digits, plain_number

# A sign stands at the beginning of a word and right before its number; a bullet has a space behind it, and a number
# that goes on in the next line ("2026" above "-0412") none.
_SIGN = r"(?:(?<![\w.,%)\]])(?<!\d\s)[-\u2212])?"
# One syllable in front turns these into their opposite. Other words begin with it as well, so they are named.
_STEMS = {
    "비": ("갱신", "보장", "과세", "급여", "흡연", "확정"),
    "무": ("배당", "진단", "심사", "해지", "해약"),
    "유": ("배당", "진단", "심사", "해지", "해약"),
    "불": ("포함", "인정", "승인", "충분", "이익"),
    "부": ("지급", "담보"),
    "미": ("지급", "보장", "포함", "가입", "적용", "환급"),
}
_TURNED = "|".join(
    rf"{'' if prefix in '미불' else '(?<![가-힣])'}{prefix}(?={'|'.join(stems)})" for prefix, stems in _STEMS.items()
)
# Of several syllables only those that no two words make where they meet ("보험금 지급" holds 금지). Lines end anywhere
# within a word.
_NEGATION = (
    rf"않|아\n?[니닌닐님닙]|없|못|(?<!환)불\n?가|제\n?외|(?<![가-힣])안(?=\s?(?:되|됩|된|될|됨|돼|하|합|한|할|함|해))|{_TURNED}"
    r"|n[o'\u2019]t\b|cannot|\b(?:without|no|never)\b|\bnon-?(?=[a-z])|\bun(?=guaranteed|insured|protected)"
)
_TOKEN = re.compile(rf"(?P<number>{_SIGN}{AMOUNT}|{SPELLED})|(?P<negation>{_NEGATION})", re.IGNORECASE)
_SAME_NEGATION = re.compile("아[닌닐님닙]")
# A bracket that closes behind digits opened no farther before them.
_BRACKET_REACH = 40
# Words that say the opposite of one another, or something else, of the same number: within a group those that differ
# are never the same. Slips do not turn one into another, so a missing one alone says nothing.
_OPPOSITES = (
    ("이상", "이하", "미만", "초과", "이내"),
    ("최고|최대", "최저|최소"),
    ("인상", "인하"),
    ("증가", "감소"),
    ("유료", "무료"),
)


@dataclass(frozen=True, slots=True)
class Token:
    """A number or a negation; tokens with the same `value` say the same. `start`, `end`: where it stands."""

    text: str
    value: str
    start: int
    end: int
    negation: bool = False


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text in order. Positions are those of the text as it was given."""
    digits = letters_as_digits(text)
    tokens: list[Token] = []
    for match in _TOKEN.finditer(digits):
        if match["negation"]:
            value = match[0].casefold().replace("\u2019", "'").replace("\n", "")
            value = _SAME_NEGATION.sub("아니", value)
            tokens.append(Token(match[0], value, match.start(), match.end(), negation=True))
        elif not _is_mark(text, match.start(), match.end()):
            tokens += _numbers(match[0], match.start())
    return tokens


def _is_mark(text: str, start: int, end: int) -> bool:
    """Whether digits are the mark of a footnote: "예금보험공사1)가", and not in brackets."""
    mark = text[start:end].isdigit() and end - start <= 2 and text[end : end + 1] == ")"
    return mark and "가" <= text[start - 1 : start] <= "힣" and "(" not in text[max(0, start - _BRACKET_REACH) : start]


def turning(stem: str) -> str:
    """The syllables that in front of a word with this beginning say its opposite: "비미" of "보장"."""
    return "".join(prefix for prefix, stems in _STEMS.items() if stem.startswith(stems))


def differences(wanted: Sequence[Token], found: Sequence[Token]) -> tuple[str, ...]:
    """What differs between two lists of tokens, "1억 -> 5천만" each; empty when they say the same."""
    said: list[str] = []
    matcher = difflib.SequenceMatcher(None, [t.value for t in wanted], [t.value for t in found], autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            before = " ".join(token.text for token in wanted[a:b]) or "(nothing)"
            said.append(f"{before} -> {' '.join(token.text for token in found[c:d]) or '(nothing)'}")
    return tuple(said)


def opposed(wanted: str, found: str) -> tuple[str, ...]:
    """Words of one text instead of which their opposites stand in the other, "이상 -> 이하" each."""
    said: list[str] = []
    for group in _OPPOSITES:
        before = Counter(dict(_counted(group, wanted)))
        if not any(before.values()):
            continue
        after = Counter(dict(_counted(group, found)))
        lost, new = before - after, after - before
        if lost and new:
            said.append(f"{' '.join(sorted(lost))} -> {' '.join(sorted(new))}")
    return tuple(said)


def _counted(group: Sequence[str], text: str) -> Iterator[tuple[str, int]]:
    """How often each word stands there; spaces are kept or lost by readers as they like."""
    plain = "".join(text.split())
    return ((words.partition("|")[0], len(re.findall(words, plain))) for words in group)


def only_units_lost(wanted: Sequence[Token], found: Sequence[Token]) -> bool:
    """Whether the same digits stand there and some only lack their unit ("1억" read as "1"): one misread syllable."""
    return len(wanted) == len(found) and all(
        one.value == other.value or (other.text.isdigit() and other.text == one.text.rstrip("십백천만억조 "))
        for one, other in zip(wanted, found, strict=True)
    )


def _numbers(text: str, start: int) -> list[Token]:
    """One amount ("1억5천만" and "150,000,000" alike), or the parts of a date, version or range ("2026.01.02")."""
    if re.fullmatch(r"\d+(?:\.\d+){2,}", text):
        return [Token(part[0], str(int(part[0])), start + part.start(), start + part.end()) for part in _digits(text)]
    sign = "-" if text[0] in "-\u2212" else ""
    return [Token(text, sign + plain_number(amount_value(text.lstrip("-\u2212"))), start, start + len(text))]


def _digits(text: str) -> list[re.Match[str]]:
    return list(re.finditer(r"\d+", text))
