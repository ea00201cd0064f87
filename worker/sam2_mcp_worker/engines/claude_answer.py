"""Claude's answer, whole or cut, into a Sight: recovery of cut JSON, and no item that makes no sense.

Pure: knows neither network nor costs. Answers come from outside and are taken for hostile.
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jiter
import json_repair

from sam2_mcp_worker.engines.ports import Box, Region, Sight, TextLine, Wanted
from sam2_mcp_worker.engines.vision_errors import VisionError

Cut = Literal["", "tokens", "time", "connection"]
# Inside an item of a list inside the answer: {"lines": [{ is three brackets deep.
ITEM_DEPTH = 3
# Text this many times taller than wide, and longer than two characters, runs from top to bottom.
VERTICAL_RATIO = 2.0


@dataclass(frozen=True, slots=True)
class Parsed:
    """An answer's JSON object; `incomplete` when its end is missing, `last_open` when its last item may be a torso."""

    value: dict[str, Any]
    incomplete: bool = False
    last_open: bool = False


def parse_answer(text: str) -> Parsed | None:
    """What can be recovered of an answer, None when nothing.

    Talk and code fences around it are left out; then json.loads, jiter (cut answers, text kept to the last character)
    and json_repair (raw line breaks, quotes without a backslash): reference/vision.md 1.
    """
    text, depth = json_part(text)
    try:
        value = json.loads(text)
        return Parsed(value) if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        pass
    try:
        value = jiter.from_json(text.encode("utf-8", "replace"), partial_mode="trailing-strings")
        # A cut number or text looks like a whole one (300 -> 30), so the item that was being written is dropped.
        return _torso(value, incomplete=True, last_open=depth >= ITEM_DEPTH)
    except ValueError:
        pass
    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    # What stood open is guessed here, so that it can only be told from the end.
    ended = text.rstrip().removesuffix("```").rstrip().endswith("}")
    return _torso(value, incomplete=not ended, last_open=not ended)


def _torso(value: Any, *, incomplete: bool, last_open: bool) -> Parsed | None:
    return Parsed(value, incomplete, last_open) if isinstance(value, dict) else None


def json_part(text: str) -> tuple[str, int]:
    """The text from its first `{` to the bracket that closes it, or to the end, and how many are open there."""
    start = max(text.find("{"), 0)
    depth, quoted, escaped = 0, False, False
    for index in range(start, len(text)):
        char = text[index]
        if quoted:
            quoted, escaped = escaped or char != '"', not escaped and char == "\\"
        elif char == '"':
            quoted = True
        elif char in "[{":
            depth += 1
        elif char in "]}":
            depth -= 1
            if depth == 0:
                return text[start : index + 1], 0
    return text[start:], depth


def read_answer(text: str, wanted: Wanted, *, width_px: int, height_px: int, cut: Cut) -> Sight:
    """The items of an answer about a picture of this size.

    An answer that ended by itself and is no whole JSON all the same counts as cut by `tokens`.

    Raises:
        VisionError: `no_answer` when nothing can be read from it, or nothing in it makes sense.
    """
    parsed = parse_answer(text)
    if cut and not (parsed and parsed.value):
        return Sight((), (), cut)
    if parsed is None or not _as_asked(parsed, wanted):
        raise VisionError("no_answer", "the model's answer is not in the asked-for form")
    if parsed.last_open:
        _drop_last_item(parsed)
    regions, lines = _list(parsed, "regions", wanted.labels), _list(parsed, "lines", wanted.text)
    size = (width_px, height_px)
    good_regions = [good for item in regions if (good := _region(item, wanted.labels, size)) is not None]
    good_lines = [good for item in lines if (good := _line(item, size)) is not None]
    kept = len(good_regions) + len(good_lines)
    dropped = len(regions) + len(lines) - kept
    if dropped and not kept:
        raise VisionError("no_answer", f"none of the {dropped} items in the model's answer makes sense")
    return Sight(tuple(good_lines), tuple(good_regions), cut or ("tokens" if parsed.incomplete else ""), dropped)


def _as_asked(parsed: Parsed, wanted: Wanted) -> bool:
    """Whether the lists that were asked for are there; of a cut answer, whether any of them is."""
    names = [name for name, asked in (("regions", wanted.labels), ("lines", wanted.text)) if asked]
    present = [isinstance(parsed.value.get(name), list) for name in names]
    return any(present) if parsed.incomplete else all(present)


def _drop_last_item(parsed: Parsed) -> None:
    lists = [value for value in parsed.value.values() if isinstance(value, list) and value]
    if lists:
        lists[-1].pop()


def _list(parsed: Parsed, name: str, asked: object) -> list[Any]:
    value = parsed.value.get(name)
    return value if asked and isinstance(value, list) else []


def _region(item: Any, labels: Sequence[str], size: tuple[int, int]) -> Region | None:
    box, confidence = _box(item, size), _confidence(item)
    if box is None or confidence is None or item.get("label") not in labels:
        return None
    return Region(item["label"], box, confidence)


def _line(item: Any, size: tuple[int, int]) -> TextLine | None:
    box, confidence = _box(item, size), _confidence(item)
    if box is None or confidence is None or not isinstance(item.get("text"), str):
        return None
    text = clean_text(item["text"])
    return TextLine(text, box, _height_px(box, text), confidence) if text else None


def _confidence(item: Any) -> float | None:
    value = item.get("confidence") if isinstance(item, dict) else None
    return float(value) if _is_number(value) and 0 <= value <= 1 else None


def _is_number(value: object) -> bool:
    # bool is an int in Python; a huge int does not even fit into a float.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**31 and not math.isnan(value)


def _box(item: Any, size: tuple[int, int]) -> Box | None:
    """The box clipped to the picture, grown to whole pixels; None when it is none or lies outside."""
    numbers = item.get("box") if isinstance(item, dict) else None
    if not isinstance(numbers, list) or len(numbers) != 4 or not all(_is_number(number) for number in numbers):
        return None
    left, top, right, bottom = numbers
    x0, y0 = max(0, math.floor(left)), max(0, math.floor(top))
    x1, y1 = min(size[0], math.ceil(right)), min(size[1], math.ceil(bottom))
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def clean_text(text: str) -> str:
    """One line of printable text: control and format characters and lone surrogates go, white space is one space."""
    kept = "".join(" " if char.isspace() else char for char in text if char.isspace() or _printable(char))
    return " ".join(kept.split())


def _printable(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn")


def _height_px(box: Box, text: str) -> float:
    """Height across the reading direction."""
    width, height = box[2] - box[0], box[3] - box[1]
    vertical = len(text) > 2 and height > VERTICAL_RATIO * width
    return float(width if vertical else height)
