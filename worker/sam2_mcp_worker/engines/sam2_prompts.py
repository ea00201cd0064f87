"""Prompts in the form that SAM 2 takes them: points in the square that it sees, a box as two of them."""

from __future__ import annotations

import torch

from sam2_mcp_worker.engines.ports import ObjectPrompt
from sam2_mcp_worker.errors import WorkerError

# SAM's labels of points: outside, inside, a box's two corners.
NEGATIVE, POSITIVE, BOX_START, BOX_END = 0, 1, 2, 3


def point_inputs(prompt: ObjectPrompt, size_px: tuple[int, int], side_px: int) -> dict[str, torch.Tensor]:
    """`point_coords` `(1, n, 2)` and `point_labels` `(1, n)`; the corners of the box come first, as SAM 2 was trained.

    Args:
        prompt: in pixels of the picture.
        size_px: width and height of the picture.
        side_px: of the square that the picture was squeezed into.

    Raises:
        WorkerError: `prompt_missing` for a prompt with neither box nor points.
    """
    x0, y0, x1, y1 = prompt.box_xyxy_px or (0, 0, 0, 0)
    box = [(x0, y0, BOX_START), (x1, y1, BOX_END)] if prompt.box_xyxy_px else []
    clicks = [(x, y, POSITIVE if positive else NEGATIVE) for x, y, positive in prompt.points]
    if not box and not clicks:
        raise WorkerError(
            "prompt_missing",
            "an object has neither a box nor a point",
            next_step="give each object a box, a point on it, or both",
        )
    marks = [*box, *clicks]
    placed = [(x * side_px / size_px[0], y * side_px / size_px[1]) for x, y, _ in marks]
    labels = [label for *_, label in marks]
    return {"point_coords": torch.tensor([placed]), "point_labels": torch.tensor([labels], dtype=torch.int32)}
