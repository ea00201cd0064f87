"""Numbers that name something and claim nothing: articles, registrations, telephones, addresses, list and page marks.

Owns what they look like. They are taken out before figures are looked for.
"""

from __future__ import annotations

import re

_HOLDERS = (
    r"번호|코드|계좌|심의필|확인필|등록|고유|No\.?|NO\.?|ID|Tel\.?|TEL|전화|팩스|FAX|Fax|문의|상담|대표|콜센터|고객센터"
)
# A unit behind digits makes them a figure whatever stands before them.
_NO_UNIT = r"(?![\d,.]*\s?(?:[십백천만억조원세년월일시분회명인건개배위대종]|달러|%))"
_IDENTIFIER = re.compile(
    "|".join(
        (
            r"[A-Za-z][A-Za-z+.-]*://\S+|www\.\S+|\S+@\S+\.\S+|[\w-]+(?:\.[A-Za-z][\w-]*)*\.(?:com|net|org|kr|example)\b\S*",
            # no document promises a number of so many digits
            r"\d{17,}",
            # telephones
            r"(?<!\d)(?:\+82[- ]?\d{1,2}|\(?0\d{1,2}\)?)[-. ]\s?\d{3,4}-\d{4}(?!\d)|(?<!\d)1[568]\d\d-\d{4}(?!\d)",
            # articles and ordinals: 제22조 제3항, 제2026-1179호; 법 22조, 3항, 별표 2
            r"(?<![가-힣])제\s?\d[\d-]*(?:\s?(?:조(?:의\s?\d+)?|항|호|목|차|회|[가-힣]))?",
            r"(?<=[법령칙정])\s?\d+조(?:의\s?\d+)?(?![\d원])|(?<!\d)\d+조(?=\s?(?:제\s?)?\d+항|의\d)|(?<!\d)\d{1,2}항(?!목|암|공)",
            r"(?<![가-힣])(?:별표|별지|부칙|그림|표)\s?\d+|(?<![가-힣])주\s?\d+\)|\d{4}-\d+\s?호",
            rf"(?:{_HOLDERS})\s?[:.]?\s?[A-Za-z]?\d[\d-]*\d{_NO_UNIT}",
            # chains: registration and account numbers, versions
            r"(?<![\d.,])\d+(?:-\d+){2,}(?!\d)|(?<![\d.,])\d+(?:\.\d+){2,}(?!\d)|(?<![\d.,])\d+:\d+(?!\d)",
            rf"(?<![\d.,~-])\d+-\d+(?!\d){_NO_UNIT}",
            # letters and digits that are one name: TOP5, v1.2, 5G, 3D; product names: ○○보험 2601, 보험(2601)
            r"(?<![A-Za-z])(?!(?:USD|KRW|EUR|JPY|US|[oOlI])\s?[\d$])[A-Za-z]+-?\d[\w.-]*|(?<![\d.,])\d+[ABCDEFGHKQTVXYZ](?![A-Za-z])",
            rf"(?:보험|공제|연금|플랜|특약)\s?\(?\d{{4}}(?:\.\d+)?\)?(?!\d){_NO_UNIT}",
            # units that headers name for numbers elsewhere
            r"[(\[]\s?(?:단위\s?:?\s?)?[십백천만억]+\s?원\s?[)\]]|단위\s?:?\s?[십백천만억]+\s?원|^\s*[천만억]\s?원\s*$",
            # addresses
            r"[가-힣](?:대로|로|길)\s?\d+(?:-\d+)?(?=\s*(?:,|\(|$|\d+층|[가-힣]+(?:빌딩|타워)))|\d+(?:층|번지|번길)|(?<!\d)\d{1,4}동\s?\d{1,4}호",
            r"\(우\)?\s?\d{5}\)?|\[\d{1,3}\]|우편번호\s?\d{5}",
            # marks: of lists at the beginning of a line, of footnotes behind a word, of pages alone in a line
            r"^\s*(?:\(\d{1,2}\)|\d{1,2}\)|\d{1,2}\.(?=\s))|(?<=[가-힣%\])])\d{1,2}\)|\*\d{1,2}\)?",
            r"^\s*[-–]\s?\d{1,4}\s?[-–]\s*$|^\s*\d{1,4}\s?/\s?\d{1,4}\s*$|(?<![A-Za-z])[Pp]\.?\s?\d+|\d+\s?(?:쪽|페이지)",
        )
    )
)
_MASK = "\0"


def without_identifiers(text: str) -> str:
    """The line with every identifier blotted out; as long as it was."""
    return _IDENTIFIER.sub(lambda match: _MASK * len(match[0]), text)
