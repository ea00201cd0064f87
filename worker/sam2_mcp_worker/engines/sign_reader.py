"""Reads figures, Latin letters and signs a second time, with PP-OCR's recogniser.

Tesseract's Korean model knows no Latin letter and takes commas in amounts for full stops; PP-OCR's recogniser (in the
rapidocr wheel, 18,708 characters) knows no Hangul but hardly errs in figures, addresses and signs. So each run
without Hangul is cut out and read again, and replaces the first reading where the second one is sure of itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.engines.line_reader import LineText
from sam2_mcp_worker.engines.onnx_session import open_session
from sam2_mcp_worker.media.line_crop import CROP_HEIGHT_PX, INK_LEVEL
from sam2_mcp_worker.media.text_height import Symbol

STEP_PX = 8  # columns of a 48 px crop for each step of the network
SURE = 0.8  # mean probability of a run; right readings have 0.9 and more, readings of cut Hangul 0.4-0.6
HALF_CHARACTER_PX = 28  # in a crop 48 px high: a W is 45 px wide, a Hangul 40 px
UNREAD_PX = 12  # a Hangul between two letters leaves some 15 px that neither reaches
LONGEST_PX = 2000  # 140 ms at 70 us a column; a run without Hangul is never that long in Korean print
HARDLY_HANGUL = 0.75  # confidence of a Korean reading below which the line may be in other letters: those have 0-0.65
CERTAIN = 0.9  # probability of a single sign that overrules the first reading
HANGUL = re.compile(r"[가-힣]")  # a lone letter such as ㅁ is how Tesseract takes a Latin one
IDEOGRAPH = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
LETTER = re.compile(r"[A-Za-z]")
DIGIT = re.compile(r"[0-9]")
LEADING_SIGNS, TRAILING_SIGNS = re.compile(r"[^0-9]*"), re.compile(r"[^0-9]*$")
CIRCLED = re.compile(r"[①-⑮]")
FIGURES = re.compile(r"[0-9.,%~:()+/-]+")
DOT_BETWEEN_LETTERS = re.compile(r"(?<=[A-Za-z]),(?=[A-Za-z])")  # addresses have no commas
HALF_WIDTH = str.maketrans("，．：；（）！？％～＋－／０１２３４５６７８９", ",.:;()!?%~+-/0123456789")
ALLOWED = re.compile(r"[!-~·‘’“”※→①-⑮₩€℃±×÷「」『』【】■□▲△▶▼◆○●★☆]+")


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring symbols `first` to `last` (inclusive) that hold no Hangul."""

    first: int
    last: int


class SignReader:
    """One loaded network. Not shared between threads."""

    def __init__(self, model_path: Path, *, threads: int) -> None:
        self._session = open_session(model_path, threads=threads)
        self._input = self._session.get_inputs()[0].name
        characters = self._session.get_modelmeta().custom_metadata_map["character"].splitlines()
        self._characters = ["", *characters, " "]  # 0 is CTC's blank

    def read(self, gray: NDArray[np.uint8]) -> list[tuple[str, float]]:
        """The characters in a 48 px high crop, dark on white, each with its probability."""
        return [(character, probability) for character, probability, _ in self.read_placed(gray)]

    def read_placed(self, gray: NDArray[np.uint8]) -> list[tuple[str, float, int]]:
        """As `read`, each character with the column where the network saw it, good to half a step or so."""
        plane = gray.astype(np.float32) / 127.5 - 1.0
        width = max(gray.shape[1], CROP_HEIGHT_PX)
        padded = np.ones((CROP_HEIGHT_PX, width), np.float32)
        padded[:, : plane.shape[1]] = plane
        batch = np.ascontiguousarray(np.broadcast_to(padded, (1, 3, *padded.shape)))
        steps = self._session.run(None, {self._input: batch})[0][0]
        best = steps.argmax(axis=1)
        fresh = (best != 0) & (best != np.concatenate([[0], best[:-1]]))
        sure = steps.max(axis=1)
        return [
            (self._characters[best[k]].translate(HALF_WIDTH), float(sure[k]), int((k + 0.5) * STEP_PX))
            for k in np.flatnonzero(fresh)
        ]


def runs_without_hangul(symbols: Sequence[Symbol]) -> list[Run]:
    """Runs worth a second look: within one word, with a figure or a letter in it.

    Bare figures beside Hangul are not: `better_reading` would change nothing but signs.
    """
    runs, start = [], None
    for i in range(len(symbols) + 1):
        inside = i < len(symbols) and not HANGUL.search(symbols[i].text)
        if start is not None and (not inside or symbols[i].starts_word):
            runs.append(Run(start, i - 1))
            start = None
        if inside and start is None:
            start = i
    return [run for run in runs if _worth_reading(symbols, run)]


def _worth_reading(symbols: Sequence[Symbol], run: Run) -> bool:
    text = _text(symbols, run)
    alone = _stands_alone(symbols, run)
    if len(text) == 1:  # Tesseract takes ① for one of these
        return alone and text in "@0123456789"
    return any(c.isalnum() for c in text) and (alone or not text.isdigit())


def _text(symbols: Sequence[Symbol], run: Run) -> str:
    return "".join(s.text for s in symbols[run.first : run.last + 1])


def _stands_alone(symbols: Sequence[Symbol], run: Run) -> bool:
    """Whether spaces or the line's ends enclose the run."""
    starts = run.first == 0 or symbols[run.first].starts_word
    return starts and (run.last + 1 == len(symbols) or symbols[run.last + 1].starts_word)


def second_look(reader: SignReader, gray: NDArray[np.uint8], first: LineText) -> tuple[str, float]:
    """The text of the line with its confidence: as a whole in other letters, or run by run in the better reading.

    A line that the first reader doubts may be one of other letters in which it saw Hangul: "Aufgabe" as "쓰바8306".
    """
    symbols = first.symbols
    texts = [(" " if i and s.starts_word else "") + s.text for i, s in enumerate(symbols)]
    has_hangul = any(HANGUL.search(s.text) for s in symbols)
    if (not has_hangul or first.confidence < HARDLY_HANGUL) and gray.shape[1] <= LONGEST_PX:
        latin = latin_line(gray, reader.read_placed(gray), sure=CERTAIN if has_hangul else SURE)
        if latin is not None:
            return latin
    for run in runs_without_hangul(symbols):
        x0, x1 = _columns(gray, symbols, run)
        if not STEP_PX <= x1 - x0 <= LONGEST_PX:
            continue
        second = reader.read(gray[:, x0:x1])
        better = better_reading(_text(symbols, run), second, stands_alone=_stands_alone(symbols, run))
        if better is not None:
            space = " " if texts[run.first].startswith(" ") else ""
            texts[run.first : run.last + 1] = [space + better] + [""] * (run.last - run.first)
    return "".join(texts), first.confidence


def latin_line(
    gray: NDArray[np.uint8], second: Sequence[tuple[str, float, int]], *, sure: float
) -> tuple[str, float] | None:
    """The second reading of a whole line and its mean probability, if it is sure of letters other than Hangul.

    Hangul comes out as ideographs, or is passed over in silence. So one ideograph, or ink that no character stands
    for, and the line is not one of other letters.
    """
    text = "".join(character for character, _, _ in second).strip()
    if not second or _widest_unread_px(gray, [x for _, _, x in second]) > UNREAD_PX:
        return None
    if IDEOGRAPH.search(text) or sum(character.isalpha() for character in text) < 2:
        return None
    mean = sum(p for _, p, _ in second) / len(second)
    return (_addressed(text), mean) if mean >= sure else None


def _widest_unread_px(gray: NDArray[np.uint8], at: Sequence[int]) -> int:
    """Columns of the widest stretch of ink that lies further from any character than half of a wide one."""
    unread = np.asarray((gray < INK_LEVEL).any(axis=0), np.bool_)
    for x in at:
        unread[max(0, x - HALF_CHARACTER_PX) : x + HALF_CHARACTER_PX] = False
    edges = np.flatnonzero(np.diff(np.concatenate([[0], unread.astype(np.int8), [0]])))
    return int((edges[1::2] - edges[::2]).max(initial=0))


def _addressed(text: str) -> str:
    return DOT_BETWEEN_LETTERS.sub(".", text)


def better_reading(first: str, second: Sequence[tuple[str, float]], *, stands_alone: bool) -> str | None:
    """What to put in place of `first`, Tesseract's reading of a run; None to keep it.

    A run that touches Hangul is cut out by guess, so that its first and last characters may be torn: there the second
    reading may mend signs, never figures. `stands_alone` says that spaces or the line's ends enclose the run.
    """
    second = _without_splinters([(character, p) for character, p in second if character != " "])
    text = "".join(character for character, _ in second)
    if not ALLOWED.fullmatch(text) or sum(p for _, p in second) / len(second) < SURE:
        return None
    if len(LETTER.findall(text)) >= 2 and (stands_alone or not FIGURES.fullmatch(first)):
        return _addressed(text) if _similar_length(first, text) else None
    certain = min(p for _, p in second) >= CERTAIN
    if CIRCLED.fullmatch(text) and certain:
        return text
    if len(first) == 1:
        return None
    if DIGIT.findall(text) == DIGIT.findall(first):
        sure_of_signs = min((p for c, p in second if not DIGIT.match(c)), default=1.0) >= CERTAIN
        return _signs_mended(first, text, stands_alone=stands_alone) if sure_of_signs else None
    return text if stands_alone and certain and _similar_length(first, text) else None


def _without_splinters(second: Sequence[tuple[str, float]]) -> Sequence[tuple[str, float]]:
    """Without what stands for a torn Hangul at either end: characters that Korean print does not use."""
    start, end = 0, len(second)
    while start < end and not ALLOWED.match(second[start][0]):
        start += 1
    while end > start and not ALLOWED.match(second[end - 1][0]):
        end -= 1
    return second[start:end]


def _similar_length(first: str, second: str) -> bool:
    return abs(len(first) - len(second)) <= 1 + len(first) // 4


def _signs_mended(first: str, second: str, *, stands_alone: bool) -> str:
    """The second reading, of which only the signs differ.

    Beside Hangul a sign at the end may be a splinter: there a sign may change but not come or go.
    """
    if stands_alone or not DIGIT.search(second):
        return second
    head, tail = LEADING_SIGNS.match(second), TRAILING_SIGNS.search(second)
    old_head, old_tail = LEADING_SIGNS.match(first), TRAILING_SIGNS.search(first)
    assert head and tail and old_head and old_tail  # each pattern matches the empty string
    middle = second[head.end() : tail.start()]
    return (
        (head[0] if old_head[0] and head[0] else old_head[0])
        + middle
        + (tail[0] if old_tail[0] and tail[0] else old_tail[0])
    )


def _columns(gray: NDArray[np.uint8], symbols: Sequence[Symbol], run: Run) -> tuple[int, int]:
    """Where to cut the run out: in the gaps of ink nearest to where Tesseract puts its ends."""
    ink = (gray < INK_LEVEL).sum(axis=0)
    left = 0 if run.first == 0 else _gap(ink, symbols[run.first - 1].x1, symbols[run.first].x0)
    right = len(ink) if run.last == len(symbols) - 1 else _gap(ink, symbols[run.last].x1, symbols[run.last + 1].x0)
    return left, right


def _gap(ink: NDArray[np.int64], a: int, b: int) -> int:
    """Middle of the emptiest stretch of columns between `a` and `b`, give or take the width of a comma."""
    start, end = max(0, min(a, b) - STEP_PX), min(len(ink), max(a, b) + STEP_PX)
    zone = ink[start:end]
    if not len(zone):
        return max(0, min(a, len(ink)))
    empty = np.flatnonzero(zone == zone.min())
    stretches = np.split(empty, np.flatnonzero(np.diff(empty) > 1) + 1)
    widest = max(stretches, key=len)
    return start + int(widest[len(widest) // 2])
