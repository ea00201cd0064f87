"""The task module of a child that uses ultralytics as its documentation shows it, with its own defaults: the baseline.

Times are taken around its calls, so that the way to this process counts against us only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from ultralytics.models.sam import SAM2VideoPredictor
from ultralytics.models.sam.model import SAM

from sam2_mcp_worker.media.pixels import PixelFile

_weights = ""
_sam: Any = None
_frames: Iterator[Any] = iter(())


def setup(config: dict[str, Any]) -> None:
    """`{"weights"}`: a checkpoint under the name by which ultralytics knows its size."""
    global _weights, _sam
    _weights = config["weights"]
    _sam = SAM(_weights)


def image(params: dict[str, Any]) -> dict[str, Any]:
    """One call of `SAM()` for `pixels`, `boxes` and `side_px` -> `{seconds, masks}`."""
    bgr = PixelFile.from_params(params["pixels"]).map_rgb()[..., ::-1].copy()
    began = time.perf_counter()
    results = _sam(bgr, bboxes=params["boxes"], imgsz=params["side_px"], verbose=False)
    seconds = time.perf_counter() - began
    masks = results[0].masks
    return {"seconds": seconds, "masks": 0 if masks is None else len(masks)}


def video_start(params: dict[str, Any]) -> dict[str, Any]:
    """A video predictor for `path` at `side_px`, prompted with `box` on its first frame."""
    global _frames
    overrides = {"conf": 0.25, "task": "segment", "mode": "predict", "imgsz": params["side_px"], "model": _weights}
    predictor = SAM2VideoPredictor(overrides={**overrides, "verbose": False, "save": False})
    _frames = iter(predictor(source=params["path"], bboxes=[params["box"]], stream=True))
    return {}


def video_next(_: dict[str, Any]) -> dict[str, Any]:
    """The next frame -> `{seconds}`."""
    began = time.perf_counter()
    next(_frames)
    return {"seconds": time.perf_counter() - began}


TASKS = {"image": image, "video_start": video_start, "video_next": video_next}
