"""Which engine cuts masks: chosen from the settings and from what is on the disk, without loading any of it."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.models.manifest import MOBILE_SAM, find_model
from sam2_mcp_worker.settings import Settings

# What the extra [sam] brings and the engine on torch imports.
SAM2_PACKAGES = ("torch", "torchvision", "ultralytics")


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine, None when there is none, and what its child process is told about weights.

    `no_masks` and `no_tracking` say why segment_image or track_video cannot work, and the mend; None where they can.
    """

    engine: str | None
    weights: dict[str, Any]
    no_masks: WorkerError | None
    no_tracking: WorkerError | None


def choose(settings: Settings) -> Choice:
    """The first engine that the setting allows and whose files are there."""
    wanted = settings.segmenter
    if wanted == "off":
        off = _not_available(
            "segmentation is switched off (SAM2_MCP_SEGMENTER=off)", "ask the operator to switch it on"
        )
        return Choice(None, {}, off, off)
    sam2_lacks = _sam2_lacks(settings)
    if wanted in ("auto", "sam2") and sam2_lacks is None:
        return Choice("sam2", _sam2_weights(settings), None, None)
    if wanted in ("auto", "onnx") and (pair := _onnx_pair(settings)) is not None:
        return Choice("onnx", pair, None, _no_tracking(sam2_lacks))
    lacks = sam2_lacks if wanted != "onnx" else _ONNX_LACKS
    assert lacks is not None
    return Choice(None, {}, lacks, _no_tracking(sam2_lacks))


def _not_available(reason: str, mend: str) -> WorkerError:
    return WorkerError("not_available", reason, next_step=mend)


_ONNX_LACKS = _not_available(
    "the SAM pair in ONNX is not there",
    "the operator sets SAM2_MCP_SAM_ONNX_ENCODER and SAM2_MCP_SAM_ONNX_DECODER with their SHA-256, or runs "
    f"`sam2-mcp-worker models fetch {MOBILE_SAM}`, and restarts the worker",
)


def sam2_packages_missing() -> list[str]:
    """Which packages of the extra [sam] are not installed."""
    return [name for name in SAM2_PACKAGES if importlib.util.find_spec(name) is None]


def _sam2_lacks(settings: Settings) -> WorkerError | None:
    """What SAM 2 lacks, if anything."""
    absent = sam2_packages_missing()
    if absent:
        return _not_available(
            f"SAM 2 needs {', '.join(absent)}, which this worker has not installed",
            "the operator installs sam2-mcp[worker,sam] and runs `sam2-mcp-worker models fetch`, then restarts "
            "the worker",
        )
    if settings.sam_weights is not None:
        if settings.sam_weights.is_file():
            return None
        return _not_available(
            f"SAM2_MCP_SAM_WEIGHTS names {settings.sam_weights.name}, which is not there", "the operator sets its path"
        )
    model = find_model(settings.sam_model)
    assert model is not None, "the setting allows names of the manifest only"
    if model.present(settings.weights_dir):
        return None
    return _not_available(
        f"the weights {settings.sam_model} are not there",
        f"the operator runs `sam2-mcp-worker models fetch {model.name}` and restarts the worker",
    )


def _no_tracking(sam2_lacks: WorkerError | None) -> WorkerError:
    if sam2_lacks is not None:
        return _not_available(
            f"tracking needs SAM 2: {sam2_lacks.what}", sam2_lacks.next_step or "ask the operator for SAM 2"
        )
    return _not_available(
        "tracking needs SAM 2, and SAM2_MCP_SEGMENTER chose the ONNX pair, which does single pictures only",
        "the operator sets SAM2_MCP_SEGMENTER=auto",
    )


def _sam2_weights(settings: Settings) -> dict[str, Any]:
    model = find_model(settings.sam_model)
    assert model is not None
    path, sha256 = settings.sam_weights, settings.sam_weights_sha256
    if path is None:
        path, sha256 = model.paths(settings.weights_dir)[0], model.files[0].sha256
    exports = str(settings.weights_dir / "exports")
    return {"model": settings.sam_model, "weights": str(path), "sha256": _digits(sha256), "exports_dir": exports}


def _onnx_pair(settings: Settings) -> dict[str, Any] | None:
    if settings.sam_onnx_encoder is not None and settings.sam_onnx_decoder is not None:
        return _pair(
            settings.sam_onnx_encoder,
            settings.sam_onnx_encoder_sha256,
            settings.sam_onnx_decoder,
            settings.sam_onnx_decoder_sha256,
        )
    model = find_model(MOBILE_SAM)
    assert model is not None
    if not model.present(settings.weights_dir):
        return None
    encoder, decoder = model.paths(settings.weights_dir)
    return _pair(encoder, model.files[0].sha256, decoder, model.files[1].sha256)


def _pair(encoder: Path, encoder_sha256: str | None, decoder: Path, decoder_sha256: str | None) -> dict[str, Any]:
    return {
        "encoder": str(encoder),
        "encoder_sha256": _digits(encoder_sha256),
        "decoder": str(decoder),
        "decoder_sha256": _digits(decoder_sha256),
    }


def _digits(sha256: str | None) -> str:
    assert sha256 is not None, "the settings refuse own weights without a hash"
    return sha256.lower()
