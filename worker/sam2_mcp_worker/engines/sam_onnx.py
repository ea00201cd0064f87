"""Masks from a SAM encoder and decoder in ONNX: MobileSAM, EdgeSAM, SAM 1 and image exports of SAM 2, without torch.

Owns the picture's way into the encoder and the prompts' way into the decoder. Which files fit is sam_onnx_signature's
business; full-size masks are media.masks'. Runs in children and tests only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.engines.ports import ObjectPrompt, Quality
from sam2_mcp_worker.engines.sam_onnx_signature import read_signature
from sam2_mcp_worker.engines.sam_predictor import MaskLogits
from sam2_mcp_worker.engines.verified_onnx import open_verified

# Means and deviations of ImageNet (RGB, of 1.0), with which every published SAM encoder was trained.
MEAN = np.array((0.485, 0.456, 0.406), np.float32)
STD = np.array((0.229, 0.224, 0.225), np.float32)
# SAM's labels of points: not a point (fills up where there is no box), outside, inside, a box's two corners.
PADDING, NEGATIVE, POSITIVE, BOX_START, BOX_END = -1, 0, 1, 2, 3
# Four masks are one for clear prompts and three for one ambiguous point; the decoder gives both kinds at once.
MASKS_WITH_SINGLE = 4


@dataclass(frozen=True, slots=True)
class OnnxEmbedding:
    """What the encoder made of a picture: `features` by the decoder's input names.

    `scaled_px` is the size that the picture had in the encoder's square, at its top left.
    """

    features: dict[str, NDArray[np.float32]]
    size_px: tuple[int, int]
    scaled_px: tuple[int, int]

    @property
    def nbytes(self) -> int:
        return sum(feature.nbytes for feature in self.features.values())


class OnnxPredictor:
    """A `MaskPredictor` over two ONNX files. `quality` changes nothing: such encoders have one fixed size.

    Whenever other masks may come out, engines/segmenter.py's ONNX_VERSION is to be raised.
    """

    def __init__(self, encoder: Path, encoder_sha256: str, decoder: Path, decoder_sha256: str, *, threads: int) -> None:
        """Open both files after their hashes were compared.

        Raises:
            WorkerError: `weights_missing`, `weights_wrong`, or `not_a_sam_model` when the files are no such pair.
        """
        self._encoder = open_verified(encoder, encoder_sha256, "the encoder", threads=threads)
        self._decoder = open_verified(decoder, decoder_sha256, "the decoder", threads=threads)
        self._signature = read_signature(self._encoder, self._decoder)

    def encode(self, rgb: NDArray[np.uint8], quality: Quality) -> OnnxEmbedding:
        """Embed a picture of any size; it fills the encoder's square by its longer side, or wholly for SAM 2."""
        signature = self._signature
        height, width = rgb.shape[:2]
        scaled = (signature.side_px, signature.side_px) if signature.squash else scaled_size(rgb, signature.side_px)
        outputs = self._encoder.run(
            list(signature.features.values()), {signature.picture: network_input(rgb, scaled, signature.side_px)}
        )
        return OnnxEmbedding(dict(zip(signature.features, outputs, strict=True)), (width, height), scaled)

    def decode(self, embedding: OnnxEmbedding, prompts: Sequence[ObjectPrompt]) -> list[MaskLogits]:
        """One decoder run a prompt: exports have the batch fixed to one object, and bigger batches are no faster."""
        return [self._decode(embedding, prompt) for prompt in prompts]

    def _decode(self, embedding: OnnxEmbedding, prompt: ObjectPrompt) -> MaskLogits:
        signature = self._signature
        coordinates, labels = prompt_arrays(prompt, embedding.size_px, embedding.scaled_px)
        inputs = {**embedding.features, **signature.prompt_inputs(coordinates, labels)}
        masks, scores = self._decoder.run([signature.masks, signature.scores], inputs)
        best = best_mask(np.ravel(scores), ambiguous=prompt.box_xyxy_px is None and len(prompt.points) == 1)
        logits = np.asarray(masks, np.float32).reshape(-1, *masks.shape[-2:])[best]
        cells = (logits.shape[1] / signature.side_px, logits.shape[0] / signature.side_px)
        extent = (embedding.scaled_px[0] * cells[0], embedding.scaled_px[1] * cells[1])
        return MaskLogits(logits, float(np.ravel(scores)[best]), extent)


def scaled_size(rgb: NDArray[Any], side_px: int) -> tuple[int, int]:
    """Width and height with the longer side brought to `side_px`, never below 1."""
    height, width = rgb.shape[:2]
    scale = side_px / max(width, height)
    return max(1, math.floor(width * scale + 0.5)), max(1, math.floor(height * scale + 0.5))


def network_input(rgb: NDArray[np.uint8], scaled_px: tuple[int, int], side_px: int) -> NDArray[np.float32]:
    """The picture at the top left of a `(1, 3, side, side)` square: normalised first, then padded with zeros."""
    height, width = rgb.shape[:2]
    # Averages areas where it shrinks, so that fine print is not dropped between the samples.
    how = cv2.INTER_AREA if scaled_px[0] < width or scaled_px[1] < height else cv2.INTER_LINEAR
    small = cv2.resize(rgb, scaled_px, interpolation=how)
    square = np.zeros((1, 3, side_px, side_px), np.float32)
    normal = (small.astype(np.float32) / np.float32(255) - MEAN) / STD
    square[0, :, : scaled_px[1], : scaled_px[0]] = normal.transpose(2, 0, 1)
    return square


def prompt_arrays(
    prompt: ObjectPrompt, size_px: tuple[int, int], scaled_px: tuple[int, int]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Coordinates `(n, 2)` in the encoder's square and SAM's labels `(n,)`; box corners or one padding point last.

    The network takes a coordinate for the top left corner of a pixel and adds half a pixel of its own.
    """
    points = [(x + 0.5, y + 0.5, POSITIVE if positive else NEGATIVE) for x, y, positive in prompt.points]
    ratio = (scaled_px[0] / size_px[0], scaled_px[1] / size_px[1])
    placed = [(x * ratio[0] - 0.5, y * ratio[1] - 0.5, label) for x, y, label in points]
    if prompt.box_xyxy_px is not None:
        x0, y0, x1, y1 = prompt.box_xyxy_px
        placed += [
            (x0 * ratio[0] - 0.5, y0 * ratio[1] - 0.5, BOX_START),
            (x1 * ratio[0] - 0.5, y1 * ratio[1] - 0.5, BOX_END),
        ]
    else:
        placed.append((0.0, 0.0, PADDING))
    table = np.array(placed, np.float32)
    return table[:, :2], table[:, 2]


def best_mask(scores: NDArray[np.float32], *, ambiguous: bool) -> int:
    """Which of the decoder's masks to take.

    Of four, the first is the one made for clear prompts; the others are the alternatives for a single point, among
    which the score decides, as it does where there are only alternatives.
    """
    if scores.size < MASKS_WITH_SINGLE:
        return int(np.argmax(scores))
    return 1 + int(np.argmax(scores[1:])) if ambiguous else 0
