"""Claude's answer, whole or cut, into a Sight: recovery of cut JSON, and no item that makes no sense.

Pure: knows neither network nor costs. Answers come from outside and are taken for hostile.
"""

from __future__ import annotations

import json
import math
import re
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard, TypeVar

import json_repair

from sam2_mcp_worker.engines.ports import Box, Region, Sight, TextLine, Wanted
from sam2_mcp_worker.engines.vision_errors import VisionError

Item = TypeVar("Item", TextLine, Region)
Cut = Literal["", "tokens", "time", "connection"]
CLOSING = {"{": "}", "[": "]"}
# A list inside the answer: {"lines": [ is two brackets deep.
LIST_DEPTH = 2
# Of an item that is repaired; long lines of print have 100 characters.
MAX_ITEM_CHARS = 1000
# Processor time for repairing one answer; an honest one with a quote in each line takes 0.05 s.
REPAIR_BUDGET_S = 0.5
ITEM = re.compile(r"\{[^{}]*\}")
KEYS = {"regions": "label", "lines": "text"}
# By this a box may pass the picture's edge, the share being one of that side, and be taken for that of something that
# the edge cuts; one that goes on for long beyond it says nothing about where anything is.
PASSING_SHARE = 0.1
PASSING_PX = 32
# Text this many times taller than wide, and longer than two characters, runs from top to bottom.
VERTICAL_RATIO = 2.0


@dataclass(frozen=True, slots=True)
class Parsed:
    """An answer's JSON object; `incomplete` when its end is missing; `lost` counts items that could not be repaired."""

    value: dict[str, Any]
    incomplete: bool = False
    lost: int = 0


@dataclass(frozen=True, slots=True)
class JsonPart:
    """An answer from its first bracket on: `whole` to the one that closes it, else to its last whole item, closed."""

    text: str
    whole: bool


def parse_answer(text: str) -> Parsed | None:
    """What can be recovered of an answer, None when nothing.

    Talk and code fences around it are left out. A cut answer ends at its last whole item: a cut number or text would
    look like a whole one (300 -> 30). What is no JSON even so is repaired. (jiter's partial mode is no help here: it
    takes a wrong character in the middle for the end and leaves out the rest without a word.)
    """
    part = json_part(text)
    try:
        # Raw line breaks in texts do no harm.
        value = json.loads(part.text, strict=False, object_pairs_hook=_with_single_keys)
        if part.whole and "{" in text[text.index(part.text) + len(part.text) :]:
            raise ValueError("a second answer behind the first")
    except (ValueError, RecursionError):
        return _repaired(text)
    return Parsed(value, incomplete=not part.whole) if isinstance(value, dict) else None


def _with_single_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Of two lists of the same name Python keeps the second without a word.
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key twice")
    return value


def json_part(text: str) -> JsonPart:
    """The JSON in a text, as far as it certainly goes."""
    start = max(text.find("{"), 0)
    safe_end, closing = start, ""
    stack: list[str] = []
    quoted = escaped = False
    for index in range(start, len(text)):
        char = text[index]
        if quoted:
            quoted, escaped = escaped or char != '"', not escaped and char == "\\"
            continue
        quoted = char == '"'
        if char in CLOSING:
            stack.append(CLOSING[char])
        elif char in "]}" and stack:
            stack.pop()
            if not stack:
                return JsonPart(text[start : index + 1], whole=True)
        else:
            continue
        if len(stack) <= LIST_DEPTH:  # a list has begun, or an item of it or the list itself has ended
            safe_end, closing = index + 1, "".join(reversed(stack))
    return JsonPart(text[start:safe_end] + closing, whole=False)


def _repaired(text: str) -> Parsed | None:
    """Items of an answer whose JSON is broken, each repaired by itself.

    Whole texts are not given to json_repair: 8 KB of brackets keep it busy for minutes, an item without a brace inside
    at most 0.05 s.
    """
    items: list[dict[str, Any]] = []
    lost = 0
    until_s = time.process_time() + REPAIR_BUDGET_S
    for match in ITEM.finditer(text):
        item = _repaired_item(match[0]) if time.process_time() < until_s else None
        if item is None or not any(key in item for key in KEYS.values()):
            lost += 1
        else:
            items.append(item)
    if not items:
        return None
    lists = {name: [item for item in items if key in item] for name, key in KEYS.items()}
    ended = text.rstrip().removesuffix("```").rstrip().endswith("}")
    return Parsed(lists, incomplete=not ended, lost=lost)


def _repaired_item(text: str) -> dict[str, Any] | None:
    if len(text) > MAX_ITEM_CHARS:
        return None
    try:
        value = json_repair.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


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
    regions, lines = _list(parsed, "regions", wanted.labels), _list(parsed, "lines", wanted.text)
    size = (width_px, height_px)
    good_regions = [region for item in regions if (region := _region(item, wanted.labels, size)) is not None]
    good_lines = [line for item in lines if (line := _line(item, size)) is not None]
    kept = len(good_regions) + len(good_lines)
    dropped = len(regions) + len(lines) - kept + parsed.lost
    if not kept and (dropped or (parsed.incomplete and not cut)):
        raise VisionError("no_answer", f"the model's answer has no item that makes sense ({dropped} that do not)")
    reason: Cut = cut or ("tokens" if parsed.incomplete else "")
    return Sight(_once(good_lines, "text"), _once(good_regions, "label"), reason, dropped)


def _once(items: Sequence[Item], name: str) -> tuple[Item, ...]:
    """Without repetitions: a model in a loop says the same of the same place until its tokens are spent."""
    found: dict[tuple[str, Box], Item] = {}
    for item in items:
        found.setdefault((getattr(item, name), item.box_xyxy_px), item)
    return tuple(found.values())


def _as_asked(parsed: Parsed, wanted: Wanted) -> bool:
    """Whether the lists that were asked for are there; of a cut answer, whether any of them is."""
    names = [name for name, asked in (("regions", wanted.labels), ("lines", wanted.text)) if asked]
    present = [isinstance(parsed.value.get(name), list) for name in names]
    return any(present) if parsed.incomplete else all(present)


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


def _is_number(value: object) -> TypeGuard[int | float]:
    # bool is an int in Python; a huge int does not even fit into a float.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**31 and not math.isnan(value)


def _box(item: Any, size: tuple[int, int]) -> Box | None:
    """The box clipped to the picture, grown to whole pixels; None when it is none or lies or reaches far outside."""
    numbers = item.get("box") if isinstance(item, dict) else None
    if not isinstance(numbers, list) or len(numbers) != 4 or not all(_is_number(number) for number in numbers):
        return None
    left, top, right, bottom = numbers
    if not (_near(left, right, size[0]) and _near(top, bottom, size[1])):
        return None
    x0, y0 = max(0, math.floor(left)), max(0, math.floor(top))
    x1, y1 = min(size[0], math.ceil(right)), min(size[1], math.ceil(bottom))
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def _near(start: float, end: float, side_px: int) -> bool:
    passing = max(PASSING_SHARE * side_px, PASSING_PX)
    return -passing <= start and end <= side_px + passing


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
