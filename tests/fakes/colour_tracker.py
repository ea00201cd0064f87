"""A tracker without a network: follows objects by the colour that they have where they were marked.

It keeps the contract of `engines.ports.Tracker`, memory on disk included, and is exact on the clips of
tests/fakes/videos.py, so tests of what is around the engine can say which pixels must come out. It can be made to lose
its memory, as an engine whose process was killed does, or to take its time.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.engines.mask_output import describe_mask
from sam2_mcp_worker.engines.ports import ObjectMask, ObjectPrompt, Quality
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.masks import tight_mask
from sam2_mcp_worker.media.pixels import PixelFile

# Compression moves colours by less; the shapes and their ground are further apart.
SAME_COLOUR = 60
# Fewer pixels of the colour are noise.
SMALLEST_PX = 30

_numbers = itertools.count(1)


@dataclass
class ColourTracker:
    """See the module. `log` names every step; `fail_at` are steps (counted over all) at which the memory is lost.

    `load_s` is how long it takes before it does anything for the first time.
    """

    identity: str = field(default_factory=lambda: f"colours/{next(_numbers)}")
    load_s: float = 0.0
    step_s: float = 0.0
    fail_at: set[int] = field(default_factory=set)
    fail_code: str = "decoder_crashed"
    disk_full: bool = False
    log: list[str] = field(default_factory=list)
    sessions: dict[str, list[list[float]]] = field(default_factory=dict)
    steps: int = 0

    async def start(
        self,
        session: str,
        frame: PixelFile,
        prompts: Sequence[ObjectPrompt],
        *,
        quality: Quality,
        mask_dir: Path,
        job: str,
        timeout_s: float,
    ) -> list[ObjectMask]:
        await self._load()
        rgb = np.array(frame.map_rgb())
        colours = [rgb[_seed(prompt)].astype(float).tolist() for prompt in prompts]
        self.sessions[session] = colours
        return await self._look("start", session, rgb, mask_dir)

    async def step(
        self, session: str, frame: PixelFile, *, mask_dir: Path, job: str, timeout_s: float
    ) -> list[ObjectMask]:
        return await self._look("step", session, np.array(frame.map_rgb()), mask_dir)

    async def save(self, session: str, path: Path, *, job: str, timeout_s: float) -> None:
        self.log.append("save")
        if self.disk_full:
            raise WorkerError("no_space", "the worker's disk is full")
        path.write_text(json.dumps(self._colours(session)), encoding="utf-8")

    async def restore(self, session: str, path: Path, *, job: str, timeout_s: float) -> None:
        try:
            self.sessions[session] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise WorkerError("track_state_lost", "no usable memory", next_step="begin again") from error
        self.log.append("restore")

    async def prepare(self, quality: str, *, job: str, timeout_s: float) -> None:
        """There is nothing to open."""

    async def drop(self, session: str, *, job: str) -> None:
        await self._load()
        self.sessions.pop(session, None)

    async def _load(self) -> None:
        await asyncio.sleep(self.load_s)
        self.load_s = 0.0

    def _colours(self, session: str) -> list[list[float]]:
        if session not in self.sessions:
            raise WorkerError("track_state_lost", "unknown session", next_step="restore it")
        return self.sessions[session]

    async def _look(self, what: str, session: str, rgb: NDArray[np.uint8], mask_dir: Path) -> list[ObjectMask]:
        self.steps += 1
        self.log.append(what)
        await asyncio.sleep(self.step_s)
        if self.steps in self.fail_at:
            self.sessions.clear()
            raise WorkerError(self.fail_code, f"step {self.steps} was to fail")
        masks = []
        for number, colour in enumerate(self._colours(session), 1):
            inside = np.linalg.norm(rgb.astype(float) - colour, axis=2) < SAME_COLOUR
            if int(inside.sum()) < SMALLEST_PX:
                inside[:] = False
            size_px = (rgb.shape[1], rgb.shape[0])
            masks.append(describe_mask(tight_mask(inside, (0, 0)), 0.9, size_px, mask_dir / f"{number}.png"))
        return masks


def _seed(prompt: ObjectPrompt) -> tuple[int, int]:
    """Row and column of the pixel whose colour counts."""
    for x, y, positive in prompt.points:
        if positive:
            return y, x
    assert prompt.box_xyxy_px is not None
    x0, y0, x1, y1 = prompt.box_xyxy_px
    return (y0 + y1) // 2, (x0 + x1) // 2
