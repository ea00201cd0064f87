"""Follows objects through frames with SAM 2: encode the frame once, look back, decode, remember; object by object.

Owns the loop and what each quality means. The network's own parts do the work, except the attention to memories
(sam2_memory_attention); what is remembered, and how it gets to disk, is sam2_memory's. For child processes only.

Objects do not influence each other, as in the reference: what is shared is the encoded frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from ultralytics.models.sam.modules.sam import SAM2Model
from ultralytics.models.sam.modules.utils import get_1d_sine_pe

from sam2_mcp_worker.engines.ports import ObjectPrompt, Quality
from sam2_mcp_worker.engines.sam2_encoder import EncoderKind, Features
from sam2_mcp_worker.engines.sam2_encoder_graph import Precision
from sam2_mcp_worker.engines.sam2_memory import (
    PAST_MEMORIES,
    PAST_POINTERS,
    FrameMemory,
    MemoryShape,
    ObjectMemory,
    TrackSession,
)
from sam2_mcp_worker.engines.sam2_memory_attention import Sam2MemoryAttention
from sam2_mcp_worker.engines.sam2_prompts import point_inputs
from sam2_mcp_worker.engines.sam_predictor import MaskLogits


@dataclass(frozen=True, slots=True)
class TrackQuality:
    """What a quality changes.

    Args:
        encoder: side of the square that frames are squeezed into, and arithmetic of the image encoder.
        past_memories: frames before the current one that it looks at, besides the prompt's. Pointers to fifteen
            frames are always kept: they cost nothing.
    """

    encoder: EncoderKind
    past_memories: int

    @property
    def side_px(self) -> int:
        """Side of the square that frames are squeezed into."""
        return self.encoder.side_px

    @property
    def precision(self) -> Precision:
        """Arithmetic of the image encoder."""
        return self.encoder.precision


# 512 px is the largest size with a frame well under a second on two cores. 448 px fits the encoder's windows, which 512
# pads: 0.68 of the work for 0.77 of the pixels (reference/sam.md 3).
TRACK_QUALITIES: dict[Quality, TrackQuality] = {
    "accurate": TrackQuality(EncoderKind(512, "fp32"), PAST_MEMORIES),
    "balanced": TrackQuality(EncoderKind(448, "fp32"), PAST_MEMORIES),
    "fast": TrackQuality(EncoderKind(448, "int8"), 3),
}


class FrameEncoder(Protocol):
    """The image encoder, whatever it runs on."""

    def features(self, rgb: NDArray[np.uint8], side_px: int, precision: Precision) -> Features:
        """As `Sam2Encoder.features`."""
        ...


@dataclass(frozen=True, slots=True)
class _Frame:
    """An encoded frame: the coarse features, and the finer two for the decoder."""

    coarse: torch.Tensor
    fine: list[torch.Tensor]

    @property
    def tokens(self) -> torch.Tensor:
        """`(tokens, 256)`, rows first."""
        return self.coarse[0].flatten(1).t().contiguous()


class Sam2Tracker:
    """The loop over the frames of any number of sessions. Not for concurrent use.

    Args:
        network: shared with the picture predictor; its input size is set anew for every frame.
        encoder: gives the features of frames.
        threads: of one inference.
        qualities: other sizes than `TRACK_QUALITIES`, for tests and measurements.
    """

    def __init__(
        self,
        network: SAM2Model,
        encoder: FrameEncoder,
        *,
        threads: int,
        qualities: dict[Quality, TrackQuality] = TRACK_QUALITIES,
    ) -> None:
        self._network: Any = network
        self._encoder = encoder
        self._threads = threads
        self._attentions: dict[int, Sam2MemoryAttention] = {}
        self._qualities = qualities
        self._prepared: set[Quality] = set()
        # The reference does so when it tracks: the mask that the prompt gave is remembered as it was shown.
        network.binarize_mask_from_pts_for_mem_enc = True

    def shapes(self) -> dict[Quality, MemoryShape]:
        """What memories of each quality look like, by which saved ones are checked."""
        stride = self._network.backbone_stride
        return {name: MemoryShape((q.side_px // stride) ** 2, q.past_memories) for name, q in self._qualities.items()}

    def prepare(self, quality: Quality) -> None:
        """Open the graphs of this quality, unless that is done, by following a box through two blank frames."""
        if quality not in self._prepared:
            blank = np.zeros((64, 64, 3), np.uint8)
            session, _ = self.start(blank, [ObjectPrompt((8, 8, 24, 24))], quality)
            self.step(session, blank)
            self._prepared.add(quality)

    @torch.inference_mode()
    def start(
        self, rgb: NDArray[np.uint8], prompts: Sequence[ObjectPrompt], quality: Quality
    ) -> tuple[TrackSession, list[MaskLogits]]:
        """Begin on the frame of the prompts; mask i belongs to prompt i.

        Raises:
            WorkerError: `prompt_missing` for a prompt with neither box nor points.
        """
        frame = self._encode(rgb, quality)
        height, width = rgb.shape[:2]
        objects, found = [], []
        for prompt in prompts:
            points = point_inputs(prompt, (width, height), self._qualities[quality].side_px)
            conditioned = frame.coarse + self._network.no_mem_embed.view(1, -1, 1, 1)
            memory, logits = self._decode(frame, conditioned, points)
            objects.append(ObjectMemory(memory))
            found.append(logits)
        return TrackSession(quality, objects), found

    @torch.inference_mode()
    def step(self, session: TrackSession, rgb: NDArray[np.uint8]) -> list[MaskLogits]:
        """The masks in the next frame; that of a lost object is blank. The session moves on by one frame."""
        frame = self._encode(rgb, session.quality)
        decoded = [self._decode(frame, self._condition(frame, session, memory), None) for memory in session.objects]
        past_memories = self._qualities[session.quality].past_memories
        for memory, (remembered, _) in zip(session.objects, decoded, strict=True):
            memory.remember(remembered, past_memories)
        session.frames += 1
        return [logits for _, logits in decoded]

    def _encode(self, rgb: NDArray[np.uint8], quality: Quality) -> _Frame:
        chosen = self._qualities[quality]
        fine, middle, coarse = self._encoder.features(rgb, chosen.side_px, chosen.precision)
        self._network.set_imgsz((chosen.side_px, chosen.side_px))
        return _Frame(coarse, [fine, middle])

    def _condition(self, frame: _Frame, session: TrackSession, memory: ObjectMemory) -> torch.Tensor:
        """The frame's coarse features in the light of what is known of one object."""
        network = self._network
        features, pointers = memory.features(), memory.pointers()
        # Memories are marked by their age, the prompt's frame by a mark of its own, the last of the table.
        ages = network.maskmem_tpos_enc.view(network.num_maskmem, -1)[[-1, *range(len(features) - 1)]]
        pointer_ages = self._pointer_ages([session.frames, *range(1, len(pointers))])
        conditioned = self._attention(session.quality)(
            frame.tokens.numpy(),
            np.stack(features),
            ages.numpy(),
            np.stack(pointers).reshape(-1, network.mem_dim),
            pointer_ages.numpy(),
        )
        return torch.from_numpy(conditioned).t().reshape(frame.coarse.shape)

    def _pointer_ages(self, ages: list[int]) -> torch.Tensor:
        """The temporal encoding of pointers that are so many frames old, once for each token that a pointer makes."""
        network = self._network
        encoded = get_1d_sine_pe(torch.tensor(ages, dtype=torch.float32) / PAST_POINTERS, dim=network.hidden_dim)
        tokens_of_one = network.hidden_dim // network.mem_dim
        projected: torch.Tensor = network.obj_ptr_tpos_proj(encoded)
        return projected.repeat_interleave(tokens_of_one, dim=0)

    def _attention(self, quality: Quality) -> Sam2MemoryAttention:
        side = self._qualities[quality].side_px
        if side not in self._attentions:
            self._attentions[side] = Sam2MemoryAttention(self._network, side_px=side, threads=self._threads)
        return self._attentions[side]

    def _decode(
        self, frame: _Frame, conditioned: torch.Tensor, points: dict[str, torch.Tensor] | None
    ) -> tuple[FrameMemory, MaskLogits]:
        """The mask of one object, and the memory of it."""
        network = self._network
        _, _, scores, mask, mask_at_input_size, pointer, presence = network._forward_sam_heads(
            backbone_features=conditioned,
            point_inputs=points,
            high_res_features=frame.fine,
            multimask_output=network._use_multimask(points is not None, points),
        )
        sizes = [tuple(frame.coarse.shape[-2:])]
        features, _ = network._encode_new_memory(
            [frame.tokens.unsqueeze(1)], sizes, mask_at_input_size, presence, is_mask_from_pts=points is not None
        )
        memory = FrameMemory(features[0].flatten(1).t().contiguous().numpy(), pointer[0].numpy())
        score = float(scores.max()) if bool(presence > 0) else 0.0
        return memory, MaskLogits(mask[0, 0].numpy(), score)
