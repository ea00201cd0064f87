"""Tracking with SAM 2: the masks of the reference package, lost objects, one encoding a frame, memory that stays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from sam2.build_sam import build_sam2_video_predictor
from tests.fakes.sam2_clips import Rgb, TorchFrameEncoder, moving_shapes
from tests.fakes.sam2_weights import TINY, random_state
from torch.nn.functional import interpolate
from ultralytics.models.sam.modules.sam import SAM2Model

from sam2_mcp_worker.engines.ports import ObjectPrompt, Quality
from sam2_mcp_worker.engines.sam2_encoder import EncoderKind
from sam2_mcp_worker.engines.sam2_network import build_network, use_threads
from sam2_mcp_worker.engines.sam2_tracker import Sam2Tracker, TrackQuality
from sam2_mcp_worker.engines.sam_predictor import MaskLogits

SIDE_PX = 256
SMALL: dict[Quality, TrackQuality] = {
    "accurate": TrackQuality(EncoderKind(SIDE_PX, "fp32"), 6),
    "fast": TrackQuality(EncoderKind(128, "fp32"), 2),
}
PARITY_FRAMES = 20  # beyond 16 frames all pointers, and beyond 7 all memories take part
BOX = ObjectPrompt((40, 70, 100, 130))
CLICKS = ObjectPrompt(points=((190, 160, True), (20, 20, False)))
CLICK = ObjectPrompt(points=((60, 100, True),))
BOX_AND_CLICK = ObjectPrompt((40, 70, 100, 130), ((60, 100, True),))


PRESENCE_BIAS = "sam_mask_decoder.pred_obj_score_head.layers.2.bias"
SEEN, HIDDEN = 0.3, -5.0  # added to what says whether the object is in the frame; random weights give about 0


@pytest.fixture(scope="module")
def state() -> dict[str, torch.Tensor]:
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


@pytest.fixture(scope="module")
def network(state: dict[str, torch.Tensor]) -> SAM2Model:
    network = build_network(TINY)
    network.load_state_dict(state)
    use_threads(1)
    return network


@pytest.fixture(scope="module")
def reference(state: dict[str, torch.Tensor]) -> Any:
    """The reference package on the same weights, set as it is for interactive use, but for the holes that need CUDA."""
    predictor = build_sam2_video_predictor(
        "configs/sam2.1/sam2.1_hiera_t.yaml",
        device="cpu",
        hydra_overrides_extra=[f"++model.image_size={SIDE_PX}", "++model.fill_hole_area=0"],
    )
    predictor.load_state_dict(state)
    predictor.fill_hole_area = 0
    return predictor


@pytest.fixture
def tracker(network: SAM2Model) -> Sam2Tracker:
    return Sam2Tracker(network, TorchFrameEncoder(network), threads=1, qualities=SMALL)


@contextmanager
def hiding(network: Any, hide: bool) -> Iterator[None]:
    """While objects are hidden, no frame shows any."""
    bias = network.get_parameter(PRESENCE_BIAS)
    before = bias.data
    bias.data = before + HIDDEN if hide else before
    yield
    bias.data = before


def track(
    tracker: Sam2Tracker,
    network: SAM2Model,
    clip: list[Rgb],
    prompts: list[ObjectPrompt],
    hidden: Sequence[int] = (),
) -> list[list[MaskLogits]]:
    session, first = tracker.start(clip[0], prompts, "accurate")
    found = [first]
    for index, frame in enumerate(clip[1:], 1):
        with hiding(network, index in hidden):
            found.append(tracker.step(session, frame))
    return found


def save_frames(clip: list[Rgb], folder: Path) -> None:
    for index, frame in enumerate(clip):
        Image.fromarray(frame).save(folder / f"{index}.jpg")


def read_frames(folder: Path) -> list[Rgb]:
    return [np.asarray(Image.open(folder / f"{index}.jpg").convert("RGB")) for index in range(PARITY_FRAMES)]


def reference_masks(
    predictor: Any, prompts: list[ObjectPrompt], folder: Path, hidden: Sequence[int]
) -> list[torch.Tensor]:
    """Logits `(objects, 1, height, width)` of each frame at the clip's size."""
    inference = predictor.init_state(str(folder))
    for number, prompt in enumerate(prompts):
        clicks = {
            "points": [point[:2] for point in prompt.points],
            "labels": [int(point[2]) for point in prompt.points],
        }
        predictor.add_new_points_or_box(
            inference, 0, number, box=prompt.box_xyxy_px, **(clicks if prompt.points else {})
        )
    steps = predictor.propagate_in_video(inference)
    found = []
    for index in range(PARITY_FRAMES):
        with hiding(predictor, index in hidden):
            found.append(next(steps)[2])
    return found


def at_size(logits: NDArray[np.float32], size_px: tuple[int, int]) -> NDArray[np.bool_]:
    scaled = interpolate(torch.from_numpy(logits)[None, None], size_px[::-1], mode="bilinear", align_corners=False)
    inside: NDArray[np.bool_] = (scaled[0, 0] > 0).numpy()
    return inside


def iou(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    union = int((a | b).sum())
    return int((a & b).sum()) / union if union else 1.0


@pytest.mark.parametrize(
    ("prompts", "size_px", "hidden"),
    [([BOX], (256, 256), range(7, 10)), ([BOX, CLICKS], (256, 256), ()), ([CLICK, BOX_AND_CLICK], (320, 200), ())],
    ids=["one object, hidden for a while", "two objects", "not square"],
)
def test_masks_are_those_of_the_reference(
    reference: Any,
    tracker: Sam2Tracker,
    network: SAM2Model,
    tmp_path: Path,
    prompts: list[ObjectPrompt],
    size_px: tuple[int, int],
    hidden: Sequence[int],
) -> None:
    clip = moving_shapes(PARITY_FRAMES, size_px)
    save_frames(clip, tmp_path)
    expected = reference_masks(reference, prompts, tmp_path, hidden)
    found = track(tracker, network, read_frames(tmp_path), prompts, hidden)
    for index, (theirs, ours) in enumerate(zip(expected, found, strict=True)):
        for their, our in zip(theirs, ours, strict=True):
            mask = at_size(our.logits, size_px)
            assert iou(mask, (their[0] > 0).numpy()) >= 0.999, index
            assert bool(mask.any()) != (index in hidden), "blank masks would prove nothing"
