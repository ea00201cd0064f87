"""Small synthetic clips, and an image encoder without exports, for tests of tracking."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from ultralytics.models.sam.modules.sam import SAM2Model

from sam2_mcp_worker.engines.sam2_encoder import Features
from sam2_mcp_worker.engines.sam2_encoder_graph import Precision

Rgb = NDArray[np.uint8]

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


class TorchFrameEncoder:
    """The network's own image encoder in eager torch; resizes as the reference package does."""

    def __init__(self, network: SAM2Model) -> None:
        self._network = network

    def features(self, rgb: Rgb, side_px: int, precision: Precision) -> Features:
        small = np.asarray(Image.fromarray(rgb).resize((side_px, side_px))).copy()
        picture = torch.from_numpy(small).permute(2, 0, 1).float() / 255
        self._network.set_imgsz((side_px, side_px))
        fine, middle, coarse = self._network.forward_image(((picture - MEAN) / STD)[None])["backbone_fpn"]
        return fine, middle, coarse
