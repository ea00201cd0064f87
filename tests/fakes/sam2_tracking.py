"""What tests of tracking share: small clips, weights under which the past matters, a tracker for small frames."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from tests.fakes.sam2_weights import TINY, random_state
from ultralytics.models.sam.modules.sam import SAM2Model

from sam2_mcp_worker.engines.ports import Quality
from sam2_mcp_worker.engines.sam2_encoder import EncoderKind, Features
from sam2_mcp_worker.engines.sam2_encoder_graph import Precision
from sam2_mcp_worker.engines.sam2_memory import PAST_MEMORIES
from sam2_mcp_worker.engines.sam2_network import build_network, use_threads
from sam2_mcp_worker.engines.sam2_tracker import Sam2Tracker, TrackQuality

Rgb = NDArray[np.uint8]

SIDE_PX = 256
SMALL: dict[Quality, TrackQuality] = {
    "accurate": TrackQuality(EncoderKind(SIDE_PX, "fp32"), PAST_MEMORIES),
    "fast": TrackQuality(EncoderKind(128, "fp32"), 2),
}
PRESENCE_BIAS = "sam_mask_decoder.pred_obj_score_head.layers.2.bias"
SEEN = 0.3  # added to what says whether the object is in the frame; random weights give about 0

# Means and deviations of ImageNet, with which the network was trained.
MEAN = torch.tensor((0.485, 0.456, 0.406))[:, None, None]
STD = torch.tensor((0.229, 0.224, 0.225))[:, None, None]


def moving_shapes(frames: int, size_px: tuple[int, int] = (256, 256), seed: int = 0) -> list[Rgb]:
    """Two bright rectangles that cross a noisy ground."""
    width, height = size_px
    noise = np.random.default_rng(seed)
    ground = noise.integers(0, 90, (height, width, 3), np.uint8)
    clip = []
    for index in range(frames):
        frame = ground.copy()
        x = width // 8 + index * width // 40
        frame[height // 4 : height // 2, x : x + width // 4] = (230, 190, 40)
        frame[height // 2 : 3 * height // 4, width - x - width // 5 : width - x] = (60, 200, 220)
        clip.append(frame)
    return clip


def telling_state() -> dict[str, torch.Tensor]:
    """Random weights under which memories and pointers decide: with those as drawn, leaving some out hardly shows."""
    state = random_state(TINY)
    state[PRESENCE_BIAS] += SEEN
    for name in state:
        looks_back = "cross_attn_image" in name and name.endswith("weight")
        if looks_back or name.startswith(("maskmem_tpos_enc", "obj_ptr")):
            state[name] *= 3
        elif name.startswith("memory_encoder.fuser") and name.endswith("gamma"):
            state[name] += 1  # 1e-6 as drawn: the depthwise layers would be left out
    return state


def telling_network() -> SAM2Model:
    """A network with `telling_state`, on one thread."""
    network = build_network(TINY)
    network.load_state_dict(telling_state())
    use_threads(1)
    return network


def small_tracker(network: SAM2Model) -> Sam2Tracker:
    """Tracks at 256 (accurate) and 128 px, so that a step takes a tenth of a second."""
    return Sam2Tracker(network, TorchFrameEncoder(network), threads=1, qualities=SMALL)


class TorchFrameEncoder:
    """The network's own image encoder in eager torch; resizes as the reference package does."""

    def __init__(self, network: SAM2Model) -> None:
        self._network = network
        self.calls = 0

    def features(self, rgb: Rgb, side_px: int, precision: Precision) -> Features:
        small = np.asarray(Image.fromarray(rgb).resize((side_px, side_px))).copy()
        picture = torch.from_numpy(small).permute(2, 0, 1).float() / 255
        self.calls += 1
        self._network.set_imgsz((side_px, side_px))
        fine, middle, coarse = self._network.forward_image(((picture - MEAN) / STD)[None])["backbone_fpn"]
        return fine, middle, coarse
