"""What a model would answer about a picture, made from the ground truth of its page and worded by the asked schema.

A line or region that the picture's edge cuts is answered cut: characters that are not wholly inside are missing.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image
from tests.fakes.claude_looks import Looks
from tests.fakes.claude_pages import Box, TrueLine, TruePage
from tests.fakes.claude_rules import SentPicture
from tests.fakes.claude_stamp import find

# Of a line of which less than this share of its height is visible, nothing can be read.
_READABLE_SHARE = 0.7
# Nobody reads print below this size: what becomes of fine print when a picture is scaled down.
_SMALLEST_PX = 7.0
_LINE_CONFIDENCE, _REGION_CONFIDENCE = 0.97, 0.93


@dataclass(frozen=True)
class Place:
    """The part of a page that a picture shows."""

    page: TruePage
    x_px: int
    y_px: int


@dataclass(frozen=True)
class SeenItem:
    """One line (with `text`) or region (with `label`), in pixels of the picture."""

    box: Box
    height_px: float
    confidence: float
    text: str = ""
    label: str = ""
    cut: bool = False


def locate(picture: SentPicture, pages: Mapping[str, TruePage], looks: Looks) -> Place | None:
    """Which rectangle of which page this is, at full resolution; None for any other picture.

    By its stamp, or by its looks where compression with loss has taken the stamp.
    """
    with Image.open(io.BytesIO(picture.data)) as image:
        rgb = np.array(image.convert("RGB"))
    found = find(rgb, ((page.name, *page.size_px) for page in pages.values())) or looks.find(rgb)
    if found is None:
        return None
    name, x_px, y_px = found
    page = pages[name] if name else TruePage("", picture.width_px, picture.height_px)
    return Place(page, x_px, y_px)


def look(place: Place, picture: SentPicture, box_error_px: int) -> list[SeenItem]:
    """All lines, then all regions that the picture shows, in the order of the page."""
    window = (place.x_px, place.y_px, place.x_px + picture.width_px, place.y_px + picture.height_px)
    items = [_see_line(line, window, picture.scale) for line in place.page.lines]
    items += [
        SeenItem(
            box, (region.text_height_px or 0.0) * picture.scale, _REGION_CONFIDENCE, "", region.label, box != region.box
        )
        for region in place.page.regions
        if (box := _clip(region.box, window)) and _share(box, region.box) > 0.1
    ]
    return [_answered(item, window, picture, box_error_px) for item in items if item is not None]


def _see_line(line: TrueLine, window: Box, scale: float) -> SeenItem | None:
    box = _clip(line.box, window)
    if box is None or line.size_px * scale < _SMALLEST_PX:
        return None
    if (box[3] - box[1]) < _READABLE_SHARE * (line.box[3] - line.box[1]):
        return None
    left, starts = line.box[0], (0.0, *line.ends_px)
    kept = [
        index
        for index in range(len(line.text))
        if left + starts[index] >= window[0] - 1 and left + line.ends_px[index] <= window[2] + 1
    ]
    text = "".join(line.text[index] for index in kept).strip()
    return SeenItem(box, line.size_px * scale, _LINE_CONFIDENCE, text, cut=box != line.box) if text else None


def _clip(box: Box, window: Box) -> Box | None:
    x0, y0, x1, y1 = max(box[0], window[0]), max(box[1], window[1]), min(box[2], window[2]), min(box[3], window[3])
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None


def _share(part: Box, whole: Box) -> float:
    return (part[2] - part[0]) * (part[3] - part[1]) / ((whole[2] - whole[0]) * (whole[3] - whole[1]))


def _answered(item: SeenItem, window: Box, picture: SentPicture, error_px: int) -> SeenItem:
    """In pixels of the picture as the model saw it, with a model's inexactness (the same each time)."""
    noise = np.random.default_rng(zlib.crc32(f"{item.text}{item.label}{item.box}".encode()))
    off = noise.integers(-error_px, error_px + 1, 4)
    width, height = picture.width_px * picture.scale, picture.height_px * picture.scale
    x0, y0, x1, y1 = (
        int(np.clip(round((edge - window[index % 2]) * picture.scale) + off[index], 0, (width, height)[index % 2]))
        for index, edge in enumerate(item.box)
    )
    box = (x0, y0, max(x1, x0 + 1), max(y1, y0 + 1))
    return SeenItem(box, item.height_px, item.confidence, item.text, item.label, item.cut)


def answer(schema: dict[str, Any], items: list[SeenItem]) -> dict[str, Any]:
    """The items in the words of the schema: its properties in its order, its enums kept."""
    return {
        name: _property(_resolve(part, schema), schema, items) for name, part in schema.get("properties", {}).items()
    }


def _property(part: dict[str, Any], root: dict[str, Any], items: list[SeenItem]) -> Any:
    if part.get("type") != "array":
        return _scalar("", part, None)
    shape = _resolve(part.get("items", {}), root)
    fields = {name: _resolve(spec, root) for name, spec in shape.get("properties", {}).items()}
    labels = next((spec["enum"] for name, spec in fields.items() if "enum" in spec and not _is_certainty(name)), None)
    chosen = [item for item in items if (item.label in labels if labels is not None else item.text)]
    return [{name: _value(name, spec, root, item) for name, spec in fields.items()} for item in chosen]


def _value(name: str, spec: dict[str, Any], root: dict[str, Any], item: SeenItem) -> Any:
    kind = spec.get("type")
    if kind == "array":
        return list(item.box)
    if kind == "object":
        return {key: _value(key, _resolve(part, root), root, item) for key, part in spec.get("properties", {}).items()}
    return _scalar(name, spec, item)


_CORNERS = {"x0": 0, "left": 0, "x_min": 0, "y0": 1, "top": 1, "y_min": 1, "x1": 2, "right": 2, "x_max": 2}
_CORNERS |= {"y1": 3, "bottom": 3, "y_max": 3}


def _scalar(name: str, spec: dict[str, Any], item: SeenItem | None) -> Any:
    """One value by the name and type of its property."""
    if item is None:
        return {"string": "", "boolean": False}.get(str(spec.get("type")), 0)
    if _is_certainty(name):
        return "high" if "enum" in spec else round(item.confidence, 2)
    if "enum" in spec:
        return item.label if item.label in spec["enum"] else spec["enum"][0]
    if name in _CORNERS:
        return item.box[_CORNERS[name]]
    if spec.get("type") == "boolean":
        return item.cut
    if spec.get("type") == "string":
        return item.text
    return round(item.height_px) if spec.get("type") == "integer" else round(item.height_px, 1)


def _is_certainty(name: str) -> bool:
    return any(word in name.lower() for word in ("confidence", "certain", "score"))


def _resolve(spec: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Follow `$ref`, and of a choice take what is not null."""
    if "$ref" in spec:
        target: Any = root
        for key in spec["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        return _resolve(target, root)
    choices = [choice for choice in spec.get("anyOf", []) if choice.get("type") != "null"]
    if choices:
        return _resolve(choices[0], root)
    if isinstance(spec.get("type"), list):
        return {**spec, "type": next(kind for kind in spec["type"] if kind != "null")}
    return spec
