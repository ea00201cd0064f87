"""Runs the image encoder of SAM 2.1: in ONNX Runtime, checked once against the network itself, or else in torch.

Owns the sessions, the check and its record on disk, and how a picture is brought to the encoder's square. It knows no
prompts and no frames. For child processes only.

The graphs are built from the loaded weights in memory, in about a second, so there is no exported file that could be
stale, damaged or half-written; what is kept on disk is that this machine's arithmetic was compared with torch.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from sam2_mcp_worker.disk import write_whole
from sam2_mcp_worker.engines.onnx_session import open_session
from sam2_mcp_worker.engines.sam2_encoder_graph import (
    GRAPH_VERSION,
    INT8_RANGE,
    INT8_RANGE_NO_VNNI,
    MEAN_RGB,
    STD_RGB,
    Precision,
    build_encoder,
)
from sam2_mcp_worker.engines.sam2_network import Network

Features = tuple[torch.Tensor, torch.Tensor, torch.Tensor]

# What ONNX Runtime may differ from torch. Float32: rounding alone is 4e-6 at outputs up to 3. int8 (root mean square of
# the difference over that of the output): 0.02 with random weights; far more means that this processor's int8
# products overflow, and the quality would not be what it is called.
MAX_ERROR_FP32 = 1e-3
MAX_RELATIVE_INT8 = 0.2
# Up to this side a session keeps its working memory (270 MB at 512 px): 20 % faster. At 1024 px it would be 650 MB.
ARENA_MAX_SIDE_PX = 512
HASH_DIGITS = 16

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EncoderKind:
    """One encoder: the side of its square and the arithmetic of its linear layers."""

    side_px: int
    precision: Precision

    def __str__(self) -> str:
        return f"{self.side_px} px {self.precision}"


@dataclass(frozen=True, slots=True)
class Check:
    """How far ONNX Runtime was from torch on one picture: over the three levels, the largest of each."""

    max_error: float
    relative_error: float

    def good_for(self, precision: Precision) -> bool:
        """Whether the encoder may be used. Not when an error is not a number."""
        if precision == "fp32":
            return self.max_error < MAX_ERROR_FP32
        return self.relative_error < MAX_RELATIVE_INT8


class Sam2Encoder:
    """The image encoder of one network, for any of its sizes. Not for concurrent use.

    Args:
        network: the loaded model.
        sha256: of its weights.
        threads: of one inference.
        records_dir: where checks are recorded; it is made when needed.
    """

    def __init__(self, network: Network, *, sha256: str, threads: int, records_dir: Path) -> None:
        self._network: Any = network
        self._sha256 = sha256.lower()
        self._threads = threads
        self._records_dir = records_dir
        self._sessions: dict[EncoderKind, onnxruntime.InferenceSession | None] = {}
        self.checks: dict[EncoderKind, Check] = {}
        """Measured differences from torch of the encoders opened so far."""
        self.on_torch: dict[EncoderKind, str] = {}
        """Encoders that torch runs, in float32, and why: slower, not worse."""

    def features(self, rgb: NDArray[np.uint8], side_px: int, precision: Precision) -> Features:
        """Of the picture `(height, width, 3)` squeezed into a square, as `SAM2Model.forward_image` gives them.

        Returns:
            `(1, 32, 4n, 4n)`, `(1, 64, 2n, 2n)`, `(1, 256, n, n)` float32, n = side / 16.
        """
        square = squeeze(rgb, side_px)
        session = self._session(EncoderKind(side_px, precision))
        return self._in_torch(square) if session is None else _in_runtime(session, square)

    def prepare(self, kinds: Iterable[EncoderKind], *, budget_s: float) -> None:
        """Check those encoders that were never checked here, the small ones first, until the time is used up.

        What is left out is checked when it is first used. No session stays open.
        """
        end_s = time.monotonic() + budget_s
        for kind in sorted(kinds, key=lambda kind: (kind.side_px, kind.precision)):
            if time.monotonic() < end_s and self._recorded(kind) is None:
                self._session(kind)
                self._sessions.pop(kind, None)

    def _session(self, kind: EncoderKind) -> onnxruntime.InferenceSession | None:
        """The opened encoder; None when torch has to do it."""
        if kind not in self._sessions:
            try:
                self._sessions[kind] = self._open(kind)
            except Exception as error:  # ONNX Runtime's exceptions have no base of their own
                log.warning("encoder %s runs in torch: %r", kind, error)
                self.on_torch[kind] = type(error).__name__
                self._sessions[kind] = None
        return self._sessions[kind]

    def _open(self, kind: EncoderKind) -> onnxruntime.InferenceSession | None:
        graph = build_encoder(self._network, kind.side_px, kind.precision, int8_range=_int8_range(_processor()))
        session = open_session(graph, threads=self._threads, arena=kind.side_px <= ARENA_MAX_SIDE_PX)
        check = self._recorded(kind)
        if check is None:
            check = self._compare(session, kind)
            self._record(kind, check)
        self.checks[kind] = check
        if check.good_for(kind.precision):
            return session
        self.on_torch[kind] = f"differs from torch by {check.max_error:.2g}, {check.relative_error:.2g} relative"
        log.warning("encoder %s runs in torch: %s", kind, self.on_torch[kind])
        return None

    def _compare(self, session: onnxruntime.InferenceSession, kind: EncoderKind) -> Check:
        noise = np.random.default_rng(0).integers(0, 256, (kind.side_px, kind.side_px, 3), dtype=np.uint8)
        errors, relative = [], []
        for ours, theirs in zip(_in_runtime(session, noise), self._in_torch(noise), strict=True):
            difference = ours - theirs
            errors.append(float(difference.abs().max()))
            relative.append(float(difference.square().mean().sqrt() / theirs.square().mean().sqrt()))
        return Check(max(errors), max(relative))

    def _in_torch(self, square: NDArray[np.uint8]) -> Features:
        side_px = len(square)
        self._network.set_imgsz((side_px, side_px))
        with torch.inference_mode():
            fine, middle, coarse = self._network.forward_image(normalised(square))["backbone_fpn"]
        return fine, middle, coarse

    def _record_path(self, kind: EncoderKind) -> Path:
        """By everything that decides the result; another processor's record does not count."""
        versions = f"{GRAPH_VERSION} {onnxruntime.__version__} {torch.__version__} {_processor()}"
        machine = hashlib.sha256(versions.encode("utf-8")).hexdigest()[:HASH_DIGITS]
        return self._records_dir / f"{self._sha256[:HASH_DIGITS]}-{kind.side_px}-{kind.precision}-{machine}.json"

    def _recorded(self, kind: EncoderKind) -> Check | None:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            content: Any = json.loads(self._record_path(kind).read_text(encoding="utf-8"))
            return Check(float(content["max_error"]), float(content["relative_error"]))
        return None

    def _record(self, kind: EncoderKind, check: Check) -> None:
        """Keep what was measured; where that fails it is measured again next time."""
        path = self._record_path(kind)
        content = {"kind": str(kind), "max_error": check.max_error, "relative_error": check.relative_error}
        try:
            write_whole(path, json.dumps(content).encode("ascii"))
        except OSError as error:
            log.warning("the check of encoder %s is not recorded: %s", kind, error.strerror)


def squeeze(rgb: NDArray[np.uint8], side_px: int) -> NDArray[np.uint8]:
    """The whole picture as a square, its aspect not kept, as SAM 2 was trained: bilinear, antialiased."""
    height, width = rgb.shape[:2]
    if (height, width) == (side_px, side_px):
        return np.ascontiguousarray(rgb)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # it is only read
        pixels = torch.from_numpy(np.ascontiguousarray(rgb))
    planes = pixels.permute(2, 0, 1).unsqueeze(0)
    square = F.interpolate(planes, (side_px, side_px), mode="bilinear", antialias=True)
    return np.ascontiguousarray(square[0].permute(1, 2, 0).numpy())


def normalised(square: NDArray[np.uint8]) -> torch.Tensor:
    """Float32 `(1, 3, side, side)` with the mean and deviation that the network was trained on."""
    planes = torch.from_numpy(square).permute(2, 0, 1).unsqueeze(0).float() / 255
    mean, deviation = (torch.from_numpy(values).view(1, 3, 1, 1) for values in (MEAN_RGB, STD_RGB))
    return (planes - mean) / deviation


def _in_runtime(session: onnxruntime.InferenceSession, square: NDArray[np.uint8]) -> Features:
    fine, middle, coarse = session.run(None, {"image": square[None]})
    return torch.from_numpy(fine), torch.from_numpy(middle), torch.from_numpy(coarse)


def _int8_range(processor: str) -> int:
    """How large int8 weights may be on this processor; only x86 has the ones that overflow."""
    return INT8_RANGE_NO_VNNI if " avx2" in processor and "vnni" not in processor else INT8_RANGE


def _processor() -> str:
    """The model of the processor and what it can do, as far as the system tells."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return " ".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
    return ""
