"""Weights for the demo's masks: SAM 2.1 when it is there or can be fetched, else whatever pair in ONNX is there."""

from __future__ import annotations

from pathlib import Path

from sam2_mcp_worker.demo.session import Say
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.models.files import fetch
from sam2_mcp_worker.models.manifest import find_model
from sam2_mcp_worker.segmentation import choose, sam2_packages_missing
from sam2_mcp_worker.settings import Settings


def weights_for_demo(settings: Settings, say: Say, *, mirror: str | None = None) -> Path:
    """The folder of the weights, after SAM 2.1 was fetched into it if that is possible and wanted."""
    if choose(settings).engine != "sam2" and _may_fetch(settings):
        _fetch(settings, say, mirror)
    choice = choose(settings)
    if choice.no_masks is not None:
        say(f"no masks in this demo: {choice.no_masks.what}; {choice.no_masks.next_step}")
    return settings.weights_dir


def _may_fetch(settings: Settings) -> bool:
    return settings.segmenter in ("auto", "sam2") and settings.sam_weights is None and not sam2_packages_missing()


def _fetch(settings: Settings, say: Say, mirror: str | None) -> None:
    model = find_model(settings.sam_model)
    assert model is not None, "the setting allows names of the manifest only"
    size_mb = sum(file.size_bytes for file in model.files) / 1e6
    say(f"fetching {model.name}, {size_mb:.0f} MB, {model.licence}")
    try:
        fetch(model, settings.weights_dir, mirror=mirror)
    except WorkerError as error:
        say(f"{model.name} cannot be fetched: {error.what}")
