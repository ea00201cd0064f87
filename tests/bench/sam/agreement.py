"""How far the qualities of tracking agree with `accurate` on one clip: mean IoU a frame, and seconds a frame.

    python -m tests.bench.sam.agreement [--frames 24] [--threads 2] [--json]

Uses the weights that SAM2_MCP_SAM_WEIGHTS and SAM2_MCP_SAM_WEIGHTS_SHA256 name. Without them it falls back on random
ones, and says so in its output: agreement then tells what size and int8 change in a network that has learnt nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tests.fakes.sam2_tracking import Rgb, moving_shapes, telling_network
from torch.nn.functional import interpolate
from ultralytics.models.sam.modules.sam import SAM2Model

from sam2_mcp_worker.engines.ports import ObjectPrompt, Quality
from sam2_mcp_worker.engines.sam2_encoder import Sam2Encoder
from sam2_mcp_worker.engines.sam2_network import load_network, use_threads
from sam2_mcp_worker.engines.sam2_tracker import TRACK_QUALITIES, Sam2Tracker
from sam2_mcp_worker.settings import Settings

SIZE_PX = (640, 360)
# Around the two shapes of the clip in its first frame.
PROMPTS = (ObjectPrompt((80, 90, 240, 180)), ObjectPrompt((432, 180, 560, 270)))
RANDOM = "random, so the masks mean nothing and the agreement says little"

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Row:
    """One quality. IoU over frames and objects that at least one side sees; `lost_alike` counts the others."""

    quality: Quality
    mean_iou: float
    min_iou: float
    lost_alike: int
    seconds_a_frame: float


def load(threads: int) -> tuple[SAM2Model, str, str]:
    """The network, what its weights are, and their hash."""
    settings = Settings()
    weights, sha256 = settings.sam_weights, settings.sam_weights_sha256
    if weights is None or sha256 is None:
        network, told, sha256 = telling_network(), RANDOM, "0" * 64
    else:
        network, told = load_network(settings.sam_model, weights, sha256), f"{settings.sam_model} {sha256[:8]}"
    use_threads(threads)
    return network, told, sha256


def masks_of(tracker: Sam2Tracker, quality: Quality, clip: list[Rgb]) -> tuple[list[list[Mask]], float]:
    """The masks of each frame at the clip's size, and the seconds that a frame took after the first."""
    session, first = tracker.start(clip[0], PROMPTS, quality)
    began = time.perf_counter()
    found = [first, *(tracker.step(session, frame) for frame in clip[1:])]
    seconds = (time.perf_counter() - began) / (len(clip) - 1)
    return [[at_size(logits.logits) for logits in frame] for frame in found], seconds


def at_size(logits: NDArray[np.float32]) -> Mask:
    """Inside or outside, at the clip's size."""
    scaled = interpolate(torch.from_numpy(logits)[None, None], SIZE_PX[::-1], mode="bilinear", align_corners=False)
    inside: Mask = (scaled[0, 0] > 0).numpy()
    return inside


def compare(quality: Quality, masks: list[list[Mask]], accurate: list[list[Mask]], seconds: float) -> Row:
    """One row of the table."""
    ious, lost_alike = [], 0
    for ours, theirs in zip(masks, accurate, strict=True):
        for our, their in zip(ours, theirs, strict=True):
            union = int((our | their).sum())
            if union:
                ious.append(int((our & their).sum()) / union)
            else:
                lost_alike += 1
    mean, least = (float(np.mean(ious)), min(ious)) if ious else (float("nan"), float("nan"))
    return Row(quality, round(mean, 4), round(least, 4), lost_alike, round(seconds, 3))


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=24)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    network, weights, sha256 = load(arguments.threads)
    clip = moving_shapes(arguments.frames, SIZE_PX)
    with tempfile.TemporaryDirectory() as folder:
        encoder = Sam2Encoder(network, sha256=sha256, threads=arguments.threads, records_dir=Path(folder))
        tracker = Sam2Tracker(network, encoder, threads=arguments.threads)
        for quality in TRACK_QUALITIES:
            tracker.start(clip[0], PROMPTS, quality)  # opens the encoder
        found = {quality: masks_of(tracker, quality, clip) for quality in TRACK_QUALITIES}
    accurate, _ = found["accurate"]
    rows = [compare(quality, masks, accurate, seconds) for quality, (masks, seconds) in found.items()]
    if arguments.json:
        sys.stdout.write(json.dumps({"weights": weights, "rows": [asdict(row) for row in rows]}) + "\n")
        return 0
    sys.stdout.write(f"weights: {weights}\n{arguments.frames} frames, {len(PROMPTS)} objects\n")
    for row in rows:
        sys.stdout.write(
            f"{row.quality:9} IoU with accurate {row.mean_iou} (least {row.min_iou}), both lost {row.lost_alike}, "
            f"{row.seconds_a_frame} s a frame\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
