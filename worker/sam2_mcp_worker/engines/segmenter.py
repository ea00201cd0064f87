"""The engine that cuts masks, as the pipelines see it. Owns the way to its child process; imports nothing heavy.

The work is done by sam_child: here requests become child tasks and their answers become masks.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sam2_mcp_worker.engines.embed_windows import has_windows
from sam2_mcp_worker.engines.mask_wire import mask_from_json
from sam2_mcp_worker.engines.ports import ObjectMask, ObjectPrompt, Quality
from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.pixels import PixelFile

CHILD_MODULE = "sam2_mcp_worker.engines.sam_child"
# The first start with new weights of SAM 2 compares its encoders with torch. On two cores that nine processes shared it
# took 59 s, as long as other children may take in all.
START_TIMEOUT_S = 240.0
# Raise them whenever the same picture and prompts may give other masks: they are part of every cache key.
SAM2_VERSION = 1
ONNX_VERSION = 1
HASH_DIGITS = 8


class SamSegmenter:
    """A `Segmenter` over the one child that holds the network.

    Steps that have begun are finished though their caller is cancelled: a killed child would lose what it has embedded.
    """

    def __init__(self, pool: TaskRunner, *, identity: str) -> None:
        self._pool = pool
        self._identity = identity

    @property
    def identity(self) -> str:
        return self._identity

    async def encode(
        self, pixels: PixelFile, content_key: str, *, quality: Quality, job: str, timeout_s: float
    ) -> None:
        params = {"pixels": pixels.to_params(), "content_key": content_key, "quality": quality}
        await self._pool.run("encode", params, timeout_s=timeout_s, job=job, finish=True)

    async def masks(
        self,
        pixels: PixelFile,
        content_key: str,
        prompts: Sequence[ObjectPrompt],
        *,
        quality: Quality,
        mask_dir: Path,
        job: str,
        timeout_s: float,
    ) -> list[ObjectMask]:
        params = {
            "pixels": pixels.to_params(),
            "content_key": content_key,
            "quality": quality,
            "mask_dir": str(mask_dir),
        }
        asked = [prompt.to_params() for prompt in prompts]
        if not has_windows((pixels.width_px, pixels.height_px)):
            answers = await self._step(params, asked, job, timeout_s)
        else:
            answers = [await self._in_windows(params, prompt, job, timeout_s) for prompt in asked]
        return [mask_from_json(answer) for answer in answers]

    async def _in_windows(
        self, params: dict[str, Any], prompt: dict[str, Any], job: str, timeout_s: float
    ) -> dict[str, Any]:
        """One object of a huge picture; each window that it is looked at in is a step of its own."""
        [answer] = await self._step(params, [prompt], job, timeout_s)
        while "window" in answer:
            [answer] = await self._step(params, [{**prompt, "window": answer["window"]}], job, timeout_s)
        return answer

    async def _step(
        self, params: dict[str, Any], prompts: list[dict[str, Any]], job: str, timeout_s: float
    ) -> list[dict[str, Any]]:
        step = {**params, "prompts": prompts}
        answer = await self._pool.run("masks", step, timeout_s=timeout_s, job=job, finish=True)
        masks: list[dict[str, Any]] = answer["masks"]
        return masks


def child_config(
    engine: str, weights: dict[str, Any], *, threads: int, embedding_cache_bytes: int, track_memory_bytes: int
) -> dict[str, Any]:
    """What `sam_child.setup` takes.

    Args:
        engine: `sam2` or `onnx`.
        weights: for `sam2` `{"model", "weights", "sha256", "exports_dir"}`, for `onnx` `{"encoder", "encoder_sha256",
            "decoder", "decoder_sha256"}`; paths as text.
        threads: of one inference; 0 = one per core that this process may use.
        embedding_cache_bytes: bound of the cache of embedded pictures.
        track_memory_bytes: bound of the memories of all tracking sessions.
    """
    return {
        "engine": engine,
        "threads": threads or usable_cores(),
        "embedding_cache_bytes": embedding_cache_bytes,
        "track_memory_bytes": track_memory_bytes,
        engine: weights,
    }


def child_env(data_dir: Path) -> dict[str, str]:
    """Environment of the child: nothing leaves the machine or is installed at run time (reference/sam.md 2).

    Idle threads of OpenMP do not spin: on two busy cores that nearly halves the time of one inference (3d there).
    """
    return {
        "YOLO_OFFLINE": "1",
        "YOLO_AUTOINSTALL": "0",
        "YOLO_VERBOSE": "0",
        "YOLO_CONFIG_DIR": str(data_dir / "ultralytics"),
        "HF_HUB_OFFLINE": "1",
        "GOMP_SPINCOUNT": "0",
    }


def segmenter_identity(engine: str, weights: dict[str, Any]) -> str:
    """Everything that decides what masks come out, from the configuration alone; the child compares the hashes."""
    if engine == "onnx":
        digits = (weights[f"{part}_sha256"][:HASH_DIGITS].lower() for part in ("encoder", "decoder"))
        return f"sam-onnx/{ONNX_VERSION} {'-'.join(digits)}"
    return f"sam2/{SAM2_VERSION} {weights['model']} {weights['sha256'][:HASH_DIGITS].lower()}"


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
