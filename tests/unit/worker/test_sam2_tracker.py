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
from tests.fakes.sam2_tracking import (
    PRESENCE_BIAS,
    SIDE_PX,
    SMALL,
    Rgb,
    TorchFrameEncoder,
    moving_shapes,
    small_tracker,
    telling_network,
)
from torch.nn.functional import interpolate
from ultralytics.models.sam.modules.sam import SAM2Model

from sam2_mcp_worker.engines.ports import ObjectPrompt
from sam2_mcp_worker.engines.sam2_memory import PAST_MEMORIES, PAST_POINTERS
from sam2_mcp_worker.engines.sam2_tracker import TRACK_QUALITIES, Sam2Tracker
from sam2_mcp_worker.engines.sam_predictor import MaskLogits
from sam2_mcp_worker.errors import WorkerError

# Beyond 16 frames all pointers, and beyond 7 all memories take part. In a shorter clip the reference would scale the
# ages of pointers by its length; we never know the length and take that of long clips.
PARITY_FRAMES = 20
HIDDEN = -5.0  # added to what says whether an object is in the frame
BOX = ObjectPrompt((40, 70, 100, 130))
CLICKS = ObjectPrompt(points=((190, 160, True), (20, 20, False)))
CLICK = ObjectPrompt(points=((60, 100, True),))
BOX_AND_CLICK = ObjectPrompt((40, 70, 100, 130), ((60, 100, True),))


@pytest.fixture(scope="module")
def network() -> SAM2Model:
    return telling_network()


@pytest.fixture(scope="module")
def reference(network: SAM2Model) -> Any:
    """The reference package on the same weights, set as it is for interactive use, but for the holes that need CUDA."""
    predictor = build_sam2_video_predictor(
        "configs/sam2.1/sam2.1_hiera_t.yaml",
        device="cpu",
        hydra_overrides_extra=[f"++model.image_size={SIDE_PX}", "++model.fill_hole_area=0"],
    )
    predictor.load_state_dict(network.state_dict())
    predictor.fill_hole_area = 0
    return predictor


@pytest.fixture
def tracker(network: SAM2Model) -> Sam2Tracker:
    return small_tracker(network)


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


def read_frames(folder: Path, frames: int) -> list[Rgb]:
    return [np.asarray(Image.open(folder / f"{index}.jpg").convert("RGB")) for index in range(frames)]


def reference_masks(
    predictor: Any, prompts: list[ObjectPrompt], folder: Path, frames: int, hidden: Sequence[int]
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
    for index in range(frames):
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
    ("frames", "prompts", "size_px", "hidden"),
    [
        (PARITY_FRAMES, [BOX], (256, 256), range(7, 10)),
        (PARITY_FRAMES, [BOX_AND_CLICK, CLICKS], (256, 256), ()),
        (6, [CLICK], (320, 200), ()),
    ],
    ids=["one object, hidden for a while", "two objects", "not square"],
)
def test_masks_are_those_of_the_reference(
    reference: Any,
    tracker: Sam2Tracker,
    network: SAM2Model,
    tmp_path: Path,
    frames: int,
    prompts: list[ObjectPrompt],
    size_px: tuple[int, int],
    hidden: Sequence[int],
) -> None:
    clip = moving_shapes(PARITY_FRAMES, size_px)
    save_frames(clip, tmp_path)
    expected = reference_masks(reference, prompts, tmp_path, frames, hidden)
    found = track(tracker, network, read_frames(tmp_path, frames), prompts, hidden)
    for index, (theirs, ours) in enumerate(zip(expected, found, strict=True)):
        for their, our in zip(theirs, ours, strict=True):
            mask = at_size(our.logits, size_px)
            assert iou(mask, (their[0] > 0).numpy()) >= 0.999, index
            assert bool(mask.any()) != (index in hidden), "blank masks would prove nothing"


def test_a_frame_is_encoded_once_for_all_objects(network: SAM2Model) -> None:
    encoder = TorchFrameEncoder(network)
    tracker = Sam2Tracker(network, encoder, threads=1, qualities=SMALL)
    clip = moving_shapes(3)
    session, first = tracker.start(clip[0], [BOX, CLICK, CLICKS], "fast")
    found = [first, *(tracker.step(session, frame) for frame in clip[1:])]
    assert encoder.calls == len(clip)
    assert [len(masks) for masks in found] == [3, 3, 3]


def test_objects_do_not_influence_each_other(tracker: Sam2Tracker) -> None:
    clip = moving_shapes(4)

    def masks_of(prompts: list[ObjectPrompt]) -> list[list[MaskLogits]]:
        session, first = tracker.start(clip[0], prompts, "fast")
        return [first, *(tracker.step(session, frame) for frame in clip[1:])]

    for alone, together in zip(masks_of([CLICKS]), masks_of([BOX, CLICKS]), strict=True):
        assert np.array_equal(alone[0].logits, together[1].logits)
        assert alone[0].predicted_iou == together[1].predicted_iou


def test_a_lost_object_is_a_blank_mask_that_nobody_takes_for_good(tracker: Sam2Tracker, network: SAM2Model) -> None:
    clip = moving_shapes(2)
    session, _ = tracker.start(clip[0], [BOX], "fast")
    with hiding(network, True):
        [lost] = tracker.step(session, clip[1])
    assert not (lost.logits > 0).any()
    assert lost.predicted_iou == 0.0


def test_memory_does_not_grow_with_the_clip(tracker: Sam2Tracker) -> None:
    clip = moving_shapes(5)
    session, _ = tracker.start(clip[0], [BOX], "fast")
    promised = session.nbytes
    for index in range(PAST_POINTERS + 4):
        tracker.step(session, clip[index % len(clip)])
    [memory] = session.objects
    assert session.frames == 1 + PAST_POINTERS + 4
    assert len(memory.features()) == 1 + SMALL["fast"].past_memories
    assert len(memory.pointers()) == 1 + PAST_POINTERS
    held = sum(array.nbytes for array in (*memory.features(), *memory.pointers()))
    assert held <= session.nbytes == promised


def test_other_qualities_look_at_fewer_memories_in_smaller_frames() -> None:
    accurate, balanced, fast = (TRACK_QUALITIES[name] for name in ("accurate", "balanced", "fast"))
    assert accurate.side_px > balanced.side_px == fast.side_px
    assert accurate.past_memories == balanced.past_memories == PAST_MEMORIES > fast.past_memories
    assert (accurate.precision, fast.precision) == ("fp32", "int8")


def test_a_prompt_without_box_and_points_is_refused(tracker: Sam2Tracker) -> None:
    with pytest.raises(WorkerError, match="prompt_missing"):
        tracker.start(moving_shapes(1)[0], [BOX, ObjectPrompt()], "fast")
