"""Recognises a SAM encoder and decoder by the names and shapes of their inputs and outputs.

The names are those of the exports that people publish: SAM 1 and MobileSAM (`image_embeddings`, `point_coords`,
`point_labels`, `mask_input`, `has_mask_input`, `orig_im_size` -> `low_res_masks`, `iou_predictions`), EdgeSAM (the
first three -> `masks`, `scores`) and SAM 2 (three embeddings that encoder and decoder call by the same names).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.errors import WorkerError

COORDINATES, LABELS = "point_coords", "point_labels"
EARLIER_MASK, HAS_EARLIER_MASK, PICTURE_SIZE = "mask_input", "has_mask_input", "orig_im_size"
OPTIONAL_INPUTS = (EARLIER_MASK, HAS_EARLIER_MASK, PICTURE_SIZE)
LOW_RESOLUTION_MASKS, MASKS = "low_res_masks", "masks"
SCORES = ("iou_predictions", "scores")
# Side of the encoder's square, and of its masks, where the file leaves them open.
USUAL_SIDE_PX, USUAL_MASK_SIDE = 1024, 256
# The decoder also draws a mask of this size, which nobody looks at: as small as possible.
UNUSED_SIZE_PX = 16
TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}


@dataclass(frozen=True, slots=True)
class Signature:
    """How the two files are called.

    Args:
        picture: the encoder's input, `(1, 3, side_px, side_px)`.
        features: the decoder's inputs that come from the encoder, with the encoder's outputs that feed them.
        squash: whether pictures fill the square (SAM 2) or keep their proportions (all others).
        fixed: the decoder's inputs that are the same for every prompt.
        types: of the decoder's inputs for coordinates and labels.
        masks: the decoder's output of low-resolution masks, and `scores` that of their predicted IoU.
    """

    picture: str
    side_px: int
    squash: bool
    features: dict[str, str]
    fixed: dict[str, NDArray[Any]]
    types: dict[str, Any]
    masks: str
    scores: str

    def prompt_inputs(self, coordinates: NDArray[np.float32], labels: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
        """The decoder's inputs beside the features, for points `(n, 2)` and labels `(n,)` of one object."""
        return {
            COORDINATES: coordinates[None].astype(self.types[COORDINATES]),
            LABELS: labels[None].astype(self.types[LABELS]),
            **self.fixed,
        }


def read_signature(encoder: Any, decoder: Any) -> Signature:
    """How to call this pair of ONNX Runtime sessions.

    Raises:
        WorkerError: `not_a_sam_model`, naming what does not fit.
    """
    picture, side = _picture_input(encoder)
    inputs = {node.name: node for node in decoder.get_inputs()}
    for name in (COORDINATES, LABELS):
        if name not in inputs:
            raise _misfit(f"the decoder has no input {name}")
    features = _features(encoder, [name for name in inputs if name not in (COORDINATES, LABELS, *OPTIONAL_INPUTS)])
    outputs = [node.name for node in decoder.get_outputs()]
    return Signature(
        picture=picture,
        side_px=side,
        squash=len(features) > 1,
        features=features,
        fixed={name: _fixed(inputs[name]) for name in OPTIONAL_INPUTS if name in inputs},
        types={name: _type(inputs[name]) for name in (COORDINATES, LABELS)},
        masks=_masks_output(outputs, sized=PICTURE_SIZE in inputs),
        scores=_one_of(SCORES, outputs),
    )


def _picture_input(encoder: Any) -> tuple[str, int]:
    inputs = encoder.get_inputs()
    shape = list(inputs[0].shape)
    if len(inputs) != 1 or len(shape) != 4 or shape[1] != 3 or inputs[0].type != "tensor(float)":
        raise _misfit(f"the encoder takes {len(inputs)} inputs, the first of {inputs[0].type} {shape}")
    sides = {side if isinstance(side, int) else USUAL_SIDE_PX for side in shape[2:]}
    if len(sides) != 1:
        raise _misfit(f"the encoder takes {shape[3]} x {shape[2]} px, which is no square")
    return inputs[0].name, sides.pop()


def _features(encoder: Any, wanted: list[str]) -> dict[str, str]:
    given = [node.name for node in encoder.get_outputs()]
    if len(wanted) == len(given) == 1:
        return {wanted[0]: given[0]}
    if not wanted or not set(wanted) <= set(given):
        raise _misfit(f"the decoder takes {', '.join(wanted) or 'no embedding'}, the encoder gives {', '.join(given)}")
    return {name: name for name in wanted}


def _masks_output(outputs: list[str], *, sized: bool) -> str:
    """`masks` are only of low resolution where the decoder is not told the picture's size."""
    return _one_of((LOW_RESOLUTION_MASKS,) if sized else (LOW_RESOLUTION_MASKS, MASKS), outputs)


def _one_of(names: tuple[str, ...], outputs: list[str]) -> str:
    for name in names:
        if name in outputs:
            return name
    raise _misfit(f"the decoder gives {', '.join(outputs)}, and none of {', '.join(names)}")


def _fixed(node: Any) -> NDArray[Any]:
    kind = _type(node)
    if node.name == EARLIER_MASK:
        sides = [side if isinstance(side, int) else USUAL_MASK_SIDE for side in node.shape[-2:]]
        return np.zeros((1, 1, *sides), kind)
    if node.name == HAS_EARLIER_MASK:
        return np.zeros(1, kind)
    return np.full(2, UNUSED_SIZE_PX, kind)


def _type(node: Any) -> Any:
    if node.type not in TYPES:
        raise _misfit(f"the decoder's input {node.name} is of {node.type}")
    return TYPES[node.type]


def _misfit(what: str) -> WorkerError:
    return WorkerError(
        "not_a_sam_model",
        what,
        rule="an encoder (1, 3, n, n) float and a decoder with point_coords and point_labels that takes what it gives",
        next_step="set an encoder and a decoder that were exported together, such as MobileSAM's or EdgeSAM's",
    )
