"""What `bench sam` works on: weights (the configured ones, or random ones), a picture, a clip."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray

from sam2_mcp_worker.disk import file_sha256
from sam2_mcp_worker.engines.sam2_network import build_network, load_network
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.segmentation import choose
from sam2_mcp_worker.settings import Settings

PICTURE_PX = (1280, 720)
CLIP_PX, CLIP_FPS = (640, 360), 24
SQUARE_PX = 80  # of the object that moves through the clip
# The names by which ultralytics knows the sizes.
ULTRALYTICS_NAMES = {
    "sam2.1_hiera_tiny": "sam2.1_t.pt",
    "sam2.1_hiera_small": "sam2.1_s.pt",
    "sam2.1_hiera_base_plus": "sam2.1_b.pt",
    "sam2.1_hiera_large": "sam2.1_l.pt",
}


@dataclass(frozen=True, slots=True)
class Weights:
    """The engine's configuration, the same weights as a checkpoint for ultralytics, and whether they are random."""

    config: dict[str, Any]
    checkpoint: Path
    random: bool


def prepare_weights(settings: Settings, folder: Path) -> Weights:
    """The configured weights; where there are none, random ones of the true architecture: times are real, masks not.

    Raises:
        WorkerError: the configured weights are missing or wrong.
    """
    choice = choose(settings.model_copy(update={"segmenter": "sam2"}))
    config = choice.weights or _random_weights(settings.sam_model, folder)
    network = load_network(config["model"], Path(config["weights"]), config["sha256"])
    checkpoint = folder / ULTRALYTICS_NAMES[config["model"]]
    torch.save({"model": network.state_dict()}, checkpoint)
    return Weights(config, checkpoint, random=not choice.weights)


def _random_weights(model: str, folder: Path) -> dict[str, Any]:
    torch.manual_seed(0)
    path = folder / "random.safetensors"
    safetensors.torch.save_file({name: t.contiguous() for name, t in build_network(model).state_dict().items()}, path)
    return {"model": model, "weights": str(path), "sha256": file_sha256(path), "exports_dir": str(folder / "exports")}


def make_picture(path: Path) -> PixelFile:
    """A picture with a dark square on noise."""
    width, height = PICTURE_PX
    rgb = _scene((height, width), (400, 200), 240)
    path.write_bytes(rgb.tobytes())
    return PixelFile(path, width, height)


def make_clip(path: Path, frames_dir: Path, frames: int) -> list[PixelFile]:
    """A clip with a square that moves, as a file for ultralytics and as decoded frames for our own tracker."""
    width, height = CLIP_PX
    files = []
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=CLIP_FPS, options={"preset": "veryfast"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.time_base = Fraction(1, CLIP_FPS)
        for number in range(frames):
            rgb = _scene((height, width), square_at(number), SQUARE_PX)
            file = PixelFile(frames_dir / f"{number:04}.rgb", width, height)
            file.path.write_bytes(rgb.tobytes())
            files.append(file)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(rgb, format="rgb24")))
        container.mux(stream.encode())
    return files


def square_at(number: int) -> tuple[int, int]:
    """Top left corner of the square in a frame of the clip."""
    return 60 + 4 * number, 120 + 2 * number


def square_box(number: int) -> tuple[int, int, int, int]:
    """Its box in a frame of the clip."""
    x, y = square_at(number)
    return x, y, x + SQUARE_PX, y + SQUARE_PX


def _scene(shape: tuple[int, int], corner: tuple[int, int], side: int) -> NDArray[np.uint8]:
    rgb = np.random.default_rng(1).integers(150, 200, (*shape, 3), dtype=np.uint8)
    x, y = corner
    rgb[y : y + side, x : x + side] = (200, 30, 40)
    return rgb
