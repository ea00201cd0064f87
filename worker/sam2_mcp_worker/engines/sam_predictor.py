"""What a network of the SAM family offers inside its child process: embed a picture, decode prompts on it.

Owns the seam between networks (sam2, sam_onnx) and the tasks that use them (sam_child). It refuses to know files,
caches and full-size masks. Runs in children and tests only: it needs numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.engines.mask_wire import box_from_json
from sam2_mcp_worker.engines.ports import ObjectPrompt, Quality


class Embedding(Protocol):
    """An embedded picture; what is in it is the business of the predictor that made it."""

    @property
    def nbytes(self) -> int:
        """Memory that it holds, bytes."""
        ...

    @property
    def size_px(self) -> tuple[int, int]:
        """Width and height of the picture."""
        ...


@dataclass(frozen=True, slots=True)
class MaskLogits:
    """The mask of one prompt as the network gives it, before it is brought to the picture's size.

    Args:
        logits: float32 `(h, w)`, low resolution; > 0 is inside.
        predicted_iou: how good the network takes it to be, about 0-1.
        extent_xy: how many columns and rows of `logits`, from the top left, the picture takes up (fractions of a cell
            are normal where the input was padded); None = all of them.
    """

    logits: NDArray[np.float32]
    predicted_iou: float
    extent_xy: tuple[float, float] | None = None


class MaskPredictor(Protocol):
    """One loaded network. Not for concurrent use."""

    def encode(self, rgb: NDArray[np.uint8], quality: Quality) -> Embedding:
        """Embed a picture `(height, width, 3)`; it may be a read-only memory map of any size from 1 x 1."""
        ...

    def decode(self, embedding: Any, prompts: Sequence[ObjectPrompt]) -> list[MaskLogits]:
        """The mask of each prompt, in order, blank ones included. Coordinates are pixels of the embedded picture."""
        ...


def prompt_from_params(params: dict[str, Any]) -> ObjectPrompt:
    """The inverse of `ObjectPrompt.to_params`."""
    points = tuple((int(x), int(y), bool(positive)) for x, y, positive in params.get("points", ()))
    return ObjectPrompt(box_from_json(params.get("box")), points)
