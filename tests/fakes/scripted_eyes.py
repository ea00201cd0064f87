"""A vision provider in the tests' own process: sees stamped pages as the scripted Claude does, without a network.

For tests of what becomes of a sight; requests, prompts and wire faults are tested against claude_server.py.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image
from tests.fakes.claude_pages import Box, TruePage
from tests.fakes.claude_rules import SentPicture
from tests.fakes.claude_sight import Place, look
from tests.fakes.claude_stamp import find

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import Region, Sight, TextLine, TilePicture, VisionModel, Wanted
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.spending import Usage, spend

COST = Usage(1, 1600, 400, 0.00036)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: what rectangle of the page it was about, and how it was put."""

    rect: Box
    model: VisionModel
    wanted: Wanted
    limit_s: float


def as_seen(asked: Asked, sight: Sight) -> Sight:
    """No fault."""
    return sight


@dataclass
class ScriptedEyes:
    """`change` may alter each sight or raise in its place. Every question costs `COST`."""

    pages: tuple[TruePage, ...]
    change: Callable[[Asked, Sight], Sight] = as_seen
    trouble: WorkerError | None = None
    asked: list[Asked] = field(default_factory=list)

    @property
    def where(self) -> str:
        return "nowhere"

    def trouble_with(self, model: VisionModel) -> WorkerError | None:
        return self.trouble

    def identity(self, model: VisionModel) -> str:
        return f"scripted/{model}"

    async def start(self) -> None:
        """Nothing to look up."""

    async def close(self) -> None:
        """Nothing to close."""

    def status(self) -> dict[str, Any]:
        today = {"usd": round(COST.usd * len(self.asked), 6), "cap_usd": 10.0}
        return {"today": today, "trouble": self.trouble}

    async def look(self, picture: TilePicture, wanted: Wanted, *, model: VisionModel, deadline: Deadline) -> Sight:
        sent = SentPicture("tile", picture.path.read_bytes(), picture.width_px, picture.height_px)
        place = self._place(sent)
        rect = (place.x_px, place.y_px, place.x_px + picture.width_px, place.y_px + picture.height_px)
        asked = Asked(rect, model, wanted, deadline.remaining_s())
        self.asked.append(asked)
        spend(COST)
        items = look(place, sent, 0)
        lines = tuple(TextLine(i.text, i.box, float(i.box[3] - i.box[1]), i.confidence) for i in items if i.text)
        regions = tuple(Region(i.label, i.box, i.confidence) for i in items if i.label in wanted.labels)
        return self.change(asked, Sight(lines if wanted.text else (), regions))

    def _place(self, sent: SentPicture) -> Place:
        with Image.open(io.BytesIO(sent.data)) as image:
            rgb = np.array(image.convert("RGB"))
        found = find(rgb, ((page.name, *page.size_px) for page in self.pages))
        assert found is not None, "the tile is no part of a known page at full resolution"
        name, x_px, y_px = found
        return Place(next(page for page in self.pages if page.name == name), x_px, y_px)
