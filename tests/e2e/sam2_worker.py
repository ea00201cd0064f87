"""Settings of a worker that has SAM 2, with random weights: what it computes is real, what it finds is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fakes.sam2_weights import random_weights

from sam2_mcp_worker.settings import Settings

# With these weights something is visible in every frame.
SEED = 1


def with_sam2(data_dir: Path, **more: Any) -> Settings:
    """SAM 2 in a worker of a test."""
    weights = random_weights(seed=SEED)
    return Settings(
        **{
            "port": 0,
            "token": "test-token",
            "data_dir": data_dir,
            "models_dir": weights.path.parent,  # what is made of the weights is made once on this machine
            "ocr_processes": 1,
            "segmenter": "sam2",
            "sam_weights": weights.path,
            "sam_weights_sha256": weights.sha256,
            **more,
        }
    )


def environment(data_dir: Path) -> dict[str, str]:
    """The same as environment variables, for a worker that is a process of its own."""
    settings = with_sam2(data_dir)
    names = ("data_dir", "models_dir", "ocr_processes", "segmenter", "sam_weights", "sam_weights_sha256")
    return {f"SAM2_MCP_{name.upper()}": str(getattr(settings, name)) for name in names}
