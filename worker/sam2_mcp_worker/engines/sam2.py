"""SAM 2.1 for pictures: embeds a picture once, decodes prompts on it one at a time.

Owns what each quality means for pictures and which of the decoder's masks is taken. The network, the encoder and the
form of prompts are sam2_network's, sam2_encoder's and sam2_prompts'. For child processes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sam2_mcp_worker.engines.ports import ObjectPrompt, Quality
from sam2_mcp_worker.engines.sam2_encoder import EncoderKind, Features, Sam2Encoder
from sam2_mcp_worker.engines.sam2_network import Network, load_network, use_threads
from sam2_mcp_worker.engines.sam2_prompts import point_inputs
from sam2_mcp_worker.engines.sam_predictor import MaskLogits

# 1024 px is the size that SAM 2.1 was trained on; 512 px costs a fifth of it. 448 px fits the encoder's windows, which
# 512 pads (0.68 of the work for 0.77 of the pixels, reference/sam.md 3), and int8 halves that again.
PICTURE_KINDS: dict[Quality, EncoderKind] = {
    "accurate": EncoderKind(1024, "fp32"),
    "balanced": EncoderKind(512, "fp32"),
    "fast": EncoderKind(448, "int8"),
}
# Checked at set-up besides those: the one that only tracking uses. What is forgotten here is checked at its first use.
TRACKED_KINDS = (EncoderKind(448, "fp32"),)
# Of the time in which the child must be ready (segmenter.START_TIMEOUT_S); all checks take 15 s on two idle cores.
PREPARE_BUDGET_S = 60.0


@dataclass(frozen=True, slots=True)
class Sam2Embedding:
    """An embedded picture: the three levels of features, the coarse one as the decoder takes it."""

    features: Features
    size_px: tuple[int, int]
    side_px: int

    @property
    def nbytes(self) -> int:
        """Memory that it holds: 16.8 MB at 1024 px, a quarter of it at 512 px."""
        return sum(level.nbytes for level in self.features)


class Sam2Predictor:
    """A `MaskPredictor` on SAM 2.1. Not for concurrent use.

    Args:
        network: shared with the tracker; its input size is set anew for every prompt.
        encoder: of the same network.
        identity: engine, size and digits of the weights' hash.
        kinds: other sizes than `PICTURE_KINDS`, for tests and measurements.
    """

    def __init__(
        self,
        network: Network,
        encoder: Sam2Encoder,
        *,
        identity: str,
        kinds: dict[Quality, EncoderKind] = PICTURE_KINDS,
    ) -> None:
        self.network: Any = network
        self.encoder = encoder
        self._identity = identity
        self._kinds = kinds

    @property
    def identity(self) -> str:
        """Engine, size and digits of the weights' hash."""
        return self._identity

    def encode(self, rgb: NDArray[np.uint8], quality: Quality) -> Sam2Embedding:
        """Embed a picture `(height, width, 3)` of any size, squeezed into the square of this quality."""
        kind = self._kinds[quality]
        fine, middle, coarse = self.encoder.features(rgb, kind.side_px, kind.precision)
        # A picture is a frame without memories, and SAM 2 marks it as such.
        conditioned = coarse + self.network.no_mem_embed.view(1, -1, 1, 1)
        return Sam2Embedding((fine, middle, conditioned), (rgb.shape[1], rgb.shape[0]), kind.side_px)

    def decode(self, embedding: Sam2Embedding, prompts: Sequence[ObjectPrompt]) -> list[MaskLogits]:
        """The mask of each prompt, in order, blank ones included: `(side / 4, side / 4)` over the whole picture.

        Raises:
            WorkerError: `prompt_missing` for a prompt with neither box nor points.
        """
        side_px = embedding.side_px
        self.network.set_imgsz((side_px, side_px))
        return [self._mask(embedding, point_inputs(p, embedding.size_px, side_px)) for p in prompts]

    @torch.inference_mode()
    def _mask(self, embedding: Sam2Embedding, points: dict[str, torch.Tensor]) -> MaskLogits:
        """A single point is ambiguous: of three masks the one that the network rates best. Otherwise its one mask."""
        network, (fine, middle, coarse) = self.network, embedding.features
        sparse, dense = network.sam_prompt_encoder(
            points=(points["point_coords"], points["point_labels"]), boxes=None, masks=None
        )
        masks, scores, _, _ = network.sam_mask_decoder(
            image_embeddings=coarse,
            image_pe=network.sam_prompt_encoder.get_dense_pe(),
            sparse_prompt_embeddings=sparse,
            dense_prompt_embeddings=dense,
            multimask_output=network._use_multimask(True, points),
            repeat_image=False,
            high_res_features=[fine, middle],
        )
        best = int(scores[0].argmax())
        return MaskLogits(masks[0, best].numpy(), float(scores[0, best]))


def load_predictor(config: dict[str, Any], *, threads: int) -> Sam2Predictor:
    """The predictor of `{"model", "weights", "sha256", "exports_dir"}`; paths as text.

    On the first start with these weights its encoders are compared with torch, which takes seconds; later ones know.

    Raises:
        WorkerError: see `sam2_network.load_network`.
    """
    model, sha256 = str(config["model"]), str(config["sha256"])
    network = load_network(model, Path(config["weights"]), sha256)
    use_threads(threads)
    encoder = Sam2Encoder(network, sha256=sha256, threads=threads, records_dir=Path(config["exports_dir"]))
    encoder.prepare({*PICTURE_KINDS.values(), *TRACKED_KINDS}, budget_s=PREPARE_BUDGET_S)
    return Sam2Predictor(network, encoder, identity=f"sam2 {model} {sha256[:8].lower()}")
