"""The image encoder as a graph: what the network's own modules compute, at every size and with every window."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from numpy.typing import NDArray
from tests.fakes.sam2_weights import dwarf_network, random_weights
from ultralytics.models.sam.modules.sam import SAM2Model

from sam2_mcp_worker.engines.onnx_session import open_session
from sam2_mcp_worker.engines.sam2_encoder import normalised
from sam2_mcp_worker.engines.sam2_encoder_graph import INT8_RANGE, INT8_RANGE_NO_VNNI, build_encoder
from sam2_mcp_worker.engines.sam2_network import load_network

MAX_ERROR = 1e-4
MAX_RELATIVE_INT8 = 0.05


@pytest.fixture(scope="module")
def tiny() -> SAM2Model:
    weights = random_weights()
    return load_network(weights.model, weights.path, weights.sha256)


def picture(side_px: int) -> NDArray[np.uint8]:
    return np.random.default_rng(side_px).integers(0, 256, (side_px, side_px, 3), dtype=np.uint8)


def levels(network: Any, square: NDArray[np.uint8]) -> list[torch.Tensor]:
    with torch.inference_mode():
        found: list[torch.Tensor] = network.forward_image(normalised(square))["backbone_fpn"]
    return found


def computed(graph: bytes, square: NDArray[np.uint8]) -> list[torch.Tensor]:
    session: onnxruntime.InferenceSession = open_session(graph, threads=1)
    return [torch.from_numpy(level) for level in session.run(None, {"image": square[None]})]


def largest_difference(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> float:
    assert [level.shape for level in ours] == [level.shape for level in theirs]
    return max(float((a - b).abs().max()) for a, b in zip(ours, theirs, strict=True))


# 224 px fits the windows of all four stages, 256 px those of the first two only.
@pytest.mark.parametrize("side_px", [224, 256])
def test_the_tiny_model_is_computed_to_rounding(tiny: SAM2Model, side_px: int) -> None:
    square = picture(side_px)
    found = computed(build_encoder(tiny, side_px, "fp32"), square)
    assert largest_difference(found, levels(tiny, square)) < MAX_ERROR
    assert min(float(level.std()) for level in found) > 0.1


@pytest.mark.parametrize("windows", [(8, 4, 14, 7), (8, 4, 16, 8), (8, 6, 10, 4)])
@pytest.mark.parametrize("heads", [1, 2])
def test_windows_and_heads_of_the_other_sizes_are_computed_to_rounding(windows: tuple[int, ...], heads: int) -> None:
    network = dwarf_network(windows, heads)
    for side_px in (32, 96, 160, 320):
        square = picture(side_px)
        found = computed(build_encoder(network, side_px, "fp32"), square)
        assert largest_difference(found, levels(network, square)) < MAX_ERROR


@pytest.mark.parametrize("int8_range", [INT8_RANGE, INT8_RANGE_NO_VNNI])
def test_int8_stays_close(tiny: SAM2Model, int8_range: int) -> None:
    square = picture(256)
    graph = build_encoder(tiny, 256, "int8", int8_range=int8_range)
    for ours, theirs in zip(computed(graph, square), levels(tiny, square), strict=True):
        assert float((ours - theirs).square().mean().sqrt() / theirs.square().mean().sqrt()) < MAX_RELATIVE_INT8


def test_int8_weights_take_a_quarter_of_the_room(tiny: SAM2Model) -> None:
    assert len(build_encoder(tiny, 128, "int8")) < 0.3 * len(build_encoder(tiny, 128, "fp32"))
