"""The tiles that are shown to the real API, the same each time: pages whose truth is known."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from PIL import Image
from tests.fakes.claude_pages import Box, TruePage, make_page
from tests.fakes.untrusted_pages import SHAPES, TRICKS

from sam2_mcp_worker.engines.ports import TilePicture, VisionModel, Wanted

LABELS = ("coin", "banknote", "seal", "product name", "disclaimer")
MODELS: tuple[VisionModel, ...] = ("fast", "accurate")


@dataclass(frozen=True)
class RecordedInput:
    """A rectangle of a page, and what it is looked at for. `max_tokens` below the need records a cut answer."""

    name: str
    page: TruePage
    box: Box
    labels: tuple[str, ...] = LABELS
    kind: Literal["PNG", "JPEG"] = "PNG"
    max_tokens: int = 10_400
    models: tuple[VisionModel, ...] = MODELS

    @property
    def wanted(self) -> Wanted:
        return Wanted(text=True, labels=self.labels)

    @property
    def size_px(self) -> tuple[int, int]:
        return self.box[2] - self.box[0], self.box[3] - self.box[1]

    @cached_property
    def encoded(self) -> bytes:
        x0, y0, x1, y1 = self.box
        out = io.BytesIO()
        Image.fromarray(self.page.rgb()[y0:y1, x0:x1]).save(out, self.kind)
        return out.getvalue()

    def tile(self, folder: Path) -> TilePicture:
        path = folder / f"{self.name}.{self.kind.lower()}"
        path.write_bytes(self.encoded)
        return TilePicture(path, f"image/{self.kind.lower()}", *self.size_px)


def inputs() -> Iterator[RecordedInput]:
    """Few and telling: each costs money."""
    leaflet = make_page("recorded leaflet", 1240, 930, density=0.4, shapes=("coin", "banknote", "seal"))
    yield RecordedInput("leaflet", leaflet, (0, 0, 1240, 930))
    yield RecordedInput("leaflet-jpeg", leaflet, (0, 0, 1240, 930), kind="JPEG", models=("fast",))
    yield RecordedInput("edges", leaflet, (310, 0, 930, 930), models=("fast",))
    dense = make_page("recorded dense", 1500, 784, density=1, columns=2, fine_lines=6)
    yield RecordedInput("dense", dense, (0, 0, 1500, 784))
    yield RecordedInput("cut", dense, (0, 0, 1500, 784), max_tokens=700, models=("fast",))
    yield RecordedInput(
        "fine-print", make_page("recorded fine", 1240, 500, density=0.01, fine_lines=18), (0, 0, 1240, 500)
    )
    yield RecordedInput("narrow", make_page("recorded narrow", 1, 1500), (0, 0, 1, 1500), models=("fast",))
    for trick in TRICKS:
        yield RecordedInput(f"trick-{trick.name}", trick.page, (0, 0, *trick.page.size_px), SHAPES, models=("fast",))
