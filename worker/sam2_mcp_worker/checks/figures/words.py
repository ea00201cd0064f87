"""Which figure is meant: the words that name it, brought to one form, and whether two names are the same.

Owns particles, endings and the few words of the trade that stand for one another. Compares whole words only: 암진단비
and 소액암진단비 share all letters of one of them and are two things. Spaces say nothing ("암 진단비").
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

_WORD = re.compile(r"\d[\d.,~]*[가-힣%]*|[가-힣]+|[A-Za-z]+")
# Particles, of which one or two end a word; what is left must be a word of two syllables at least ("치과", "결과").
_PARTICLES = re.compile(
    r"(?:으로는|에서는|에게는|까지의|부터의|으로|에서|에게|부터|까지|마다|이나|이란|에는|라면|은|는|이|가|을|를|의|에|로|와|과|도|시)$"
)
# Endings of verbs made from nouns: "지급합니다" says 지급.
_ENDINGS = re.compile(
    r"(?:해\s?드립니다|하여드립니다|드립니다|해드려요|합니다|됩니다|입니다|하세요|하는|되는|하여|하면|되면|하고|되고|해도|했을|하셔도|받으면|받은"
    r"|받을|된|될|할|한|하기|되어|해)$"
)
_KIND = re.compile(r"^\d[\d.,~]*(?P<unit>[가-힣%]+?)(?:이상|이하)?$|^(?:남성|여성)$|(?<=[가-힣])형$")
_SAME = (
    (re.compile(r"^(?:남|남자|남성)$"), "남성"),
    (re.compile(r"^(?:여|여자|여성)$"), "여성"),
    (re.compile(r"진단(?:금|급여금|보험금|자금)$"), "진단비"),
    (re.compile(r"진단확정$"), "진단"),
    (re.compile(r"수술(?:금|급여금|자금)$"), "수술비"),
    (re.compile(r"율$"), "률"),
    (re.compile(r"^(?:가입나이|가입연령|가입가능나이|가입)$"), "가입"),
    (re.compile(r"^(?:납|납입)$"), "납입기간"),
    (re.compile(r"^만기$"), "보험기간"),
    (re.compile(r"^(?:월납|월)?보험료$|^납입보험료$"), "보험료"),
)
# Words that stand beside any figure. They neither tell two figures apart nor say that two are one.
_GENERIC_WORDS = """
    드립니다 드려요 드리며 받으세요 받습니다 받으실 합니다 됩니다 해드립니다 입니다 이며 이고 됨 함
    개정 시행 작성 발행 인쇄 현재 작성일 기준일 시행일
    은 는 가 을 를 의 에 로 와 과 도 씩 간 내 당 간에 동안 에는 으로 까지의 한하여 한해 한도로 범위
    적용 계약일 계약일부터 가입일 후 경과 지난 날 날부터 당시
    금액 보장 보장금액 보장내용 지급 지급금액 지급액 가입금액 보험가입금액 보험금 내용 구분 항목 기준 예시 경우 때
    시 및 등 또는 각 각각 해당 상품 원 단위 만원 천원 가능 대상 드림 위 그 이 만 단 약 나이 연령 담보
    담보명 값 비고 사항 일 월 연 매월 매년 하루 월납 이상 이하 미만 초과 이내 까지 부터 한도 최대 최고 최소
    최저 정도 내외 평균 수 있습니다 있는 있음 따라 따른 대한 통해 위해 받을 받는 a an the of to
    is for and in
"""
# Words of advertising: they praise and tell nothing apart.
_PRAISE_WORDS = """
    가입하면 가입하시면 가입하고 가입해도 가입만
    지금 바로 이제 오직 누구나 무려 걱정 걱정없이 부담 부담없이 안심 든든하게 든든 든든한 든든히 넉넉하게 넉넉한
    넉넉히 튼튼하게 확실하게 확실한 간편하게 편하게 편안하게 특별한 새로운 새롭게 더 더욱 또 꼭 한번에 함께 우리 내
    나의 고객님 고객 당신 여러분 드리는 챙기는 준비하는 지키는 책임지는 놓치지 마세요 하나로 여기 이런 이렇게 모두
    전부 다 역시 드디어 혜택 추천 인기 신상품 출시
"""


_GENERIC = frozenset(_GENERIC_WORDS.split())
_PRAISE = frozenset(_PRAISE_WORDS.split())


@functools.lru_cache(maxsize=4096)  # headers and names come again in every cell of a table
def words_of(phrase: str) -> tuple[str, ...]:
    """The words of a phrase that tell figures apart, each in one form, in order."""
    found = (_word(match[0]) for match in _WORD.finditer(phrase))
    return tuple(word for word in found if word and word not in _GENERIC and word not in _PRAISE)


def _word(written: str) -> str:
    if written in _GENERIC or written in _PRAISE:
        return ""
    if written[0].isdigit():
        return written  # a condition has no particles
    word = _named(written.casefold())
    return _named(_stem(_stem(word, _ENDINGS), _PARTICLES)) if word == written.casefold() else word


def _named(word: str) -> str:
    for pattern, name in _SAME:
        word = pattern.sub(name, word)
    return word


def _stem(word: str, endings: re.Pattern[str]) -> str:
    stem = endings.sub("", word)
    return stem if len(stem) > 1 else word


def contradict(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two contexts name different ones of a kind: 40세 and 30세, 남성 and 여성, 실속형 and 고급형."""
    mine, theirs = _by_kind(words), _by_kind(others)
    return any(not mine[kind] & theirs[kind] for kind in mine.keys() & theirs.keys())


def tells(words: Sequence[str]) -> bool:
    """Whether words say which figure is meant: a name does, and two choices ("40세", "여성"); one choice does not."""
    chosen = sum(len(found) for found in _by_kind(words).values())
    return chosen >= 2 or chosen < len(words)


def _by_kind(words: Sequence[str]) -> dict[str, set[str]]:
    kinds: dict[str, set[str]] = {}
    for word in words:
        if match := _KIND.search(word):
            kinds.setdefault("sex" if match[0].endswith("성") else match["unit"] or match[0][-1], set()).add(word)
    return kinds


def covered(words: Sequence[str], by: Sequence[str]) -> list[bool]:
    """For each word whether it is among the others, whatever the spaces between the parts of a name."""
    known = joined(tuple(by))
    found = [False] * len(words)
    for size in (1, 2, 3):
        for start in range(len(words) - size + 1):
            if "".join(words[start : start + size]) in known:
                found[start : start + size] = [True] * size
    return [known or _said_already(word, words, found) for known, word in zip(found, words, strict=True)]


def _said_already(word: str, words: Sequence[str], found: Sequence[bool]) -> bool:
    """Whether a name that is known holds the word: "질병입원일당은 입원 1일당"."""
    return any(known and word in name for known, name in zip(found, words, strict=True))


@functools.lru_cache(maxsize=4096)
def joined(words: tuple[str, ...]) -> frozenset[str]:
    """Words and what up to three neighbours make when they are written in one."""
    return frozenset(
        "".join(words[start : start + size]) for size in (1, 2, 3) for start in range(len(words) - size + 1)
    )
