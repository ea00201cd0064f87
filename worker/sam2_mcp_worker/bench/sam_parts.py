"""The task module of a child that times parts of the engine: matrix products, which are the floor, and the encoder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sam2_mcp_worker.engines.ports import ObjectPrompt
from sam2_mcp_worker.engines.sam2 import Sam2Embedding, Sam2Predictor
from sam2_mcp_worker.engines.sam2_encoder import Sam2Encoder
from sam2_mcp_worker.engines.sam2_network import load_network, use_threads
from sam2_mcp_worker.media.masks import cut_mask
from sam2_mcp_worker.media.pixels import PixelFile

PRODUCT_SIDE = 2048  # large enough that the product runs at the machine's full speed, small enough for 0.1 s

_encoder: Sam2Encoder | None = None
_predictor: Sam2Predictor | None = None
_embedding: Sam2Embedding | None = None


def setup(config: dict[str, Any]) -> None:
    """`{"model", "weights", "sha256", "exports_dir", "threads"}`, as the engine's own child has them."""
    global _encoder, _predictor
    network = load_network(config["model"], Path(config["weights"]), config["sha256"])
    use_threads(config["threads"])
    _encoder = Sam2Encoder(
        network, sha256=config["sha256"], threads=config["threads"], records_dir=Path(config["exports_dir"])
    )
    _predictor = Sam2Predictor(network, _encoder, identity="bench")


def product(_: dict[str, Any]) -> dict[str, Any]:
    """One float32 matrix product -> `{gflop_per_s}`."""
    left, right = (torch.rand(PRODUCT_SIDE, PRODUCT_SIDE) for _ in range(2))
    began = time.perf_counter()
    torch.mm(left, right)
    return {"gflop_per_s": 2 * PRODUCT_SIDE**3 / (time.perf_counter() - began) / 1e9}


def encode(params: dict[str, Any]) -> dict[str, Any]:
    """One picture of `side_px` through the encoder of `precision` -> `{seconds}`; resizing is not in it."""
    assert _encoder is not None
    side_px = params["side_px"]
    square = np.random.default_rng(0).integers(0, 256, (side_px, side_px, 3), dtype=np.uint8)
    began = time.perf_counter()
    _encoder.features(square, side_px, params["precision"])
    return {"seconds": time.perf_counter() - began}


def masks(params: dict[str, Any]) -> dict[str, Any]:
    """The masks of `boxes` in `pixels` at `quality`, at the picture's size -> `{seconds}`.

    That is what the baseline gives. With `cached` the picture's embedding is that of the call before.
    """
    global _embedding
    assert _predictor is not None
    pixels = PixelFile.from_params(params["pixels"])
    rgb = np.ascontiguousarray(pixels.map_rgb())
    whole = (0, 0, pixels.width_px, pixels.height_px)
    began = time.perf_counter()
    if not params["cached"] or _embedding is None:
        _embedding = _predictor.encode(rgb, params["quality"])
    for found in _predictor.decode(_embedding, [ObjectPrompt(tuple(box)) for box in params["boxes"]]):
        cut_mask(found.logits, whole)
    return {"seconds": time.perf_counter() - began}


TASKS = {"product": product, "encode": encode, "masks": masks}
