"""The engine that follows objects, as the pipelines see it. Owns the way to its child process; imports nothing heavy.

The work is done by tracking_tasks in the child that also cuts masks out of pictures. A step that has begun is finished
though its caller is cancelled, because a killed child would lose the memories of all sessions. Such a session is then
one frame further than its caller knows: `restore` takes it back to a frame that is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sam2_mcp_worker.engines.mask_wire import mask_from_json
from sam2_mcp_worker.engines.ports import ObjectMask, ObjectPrompt, Quality
from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.pixels import PixelFile

# Forgetting takes no time; this only ends a child that hangs.
DROP_TIMEOUT_S = 10.0


class SamTracker:
    """A `Tracker` over the one child that holds the network."""

    def __init__(self, pool: TaskRunner, *, identity: str) -> None:
        self._pool = pool
        self._identity = identity

    @property
    def identity(self) -> str:
        return self._identity

    async def start(
        self,
        session: str,
        frame: PixelFile,
        prompts: Sequence[ObjectPrompt],
        *,
        quality: Quality,
        mask_dir: Path,
        job: str,
        timeout_s: float,
    ) -> list[ObjectMask]:
        params = {
            "session": session,
            "pixels": frame.to_params(),
            "prompts": [prompt.to_params() for prompt in prompts],
            "quality": quality,
            "mask_dir": str(mask_dir),
        }
        return _masks(await self._run("track_start", params, job, timeout_s))

    async def step(
        self, session: str, frame: PixelFile, *, mask_dir: Path, job: str, timeout_s: float
    ) -> list[ObjectMask]:
        params = {"session": session, "pixels": frame.to_params(), "mask_dir": str(mask_dir)}
        return _masks(await self._run("track_step", params, job, timeout_s))

    async def save(self, session: str, path: Path, *, job: str, timeout_s: float) -> None:
        await self._run("track_save", {"session": session, "path": str(path)}, job, timeout_s)

    async def restore(self, session: str, path: Path, *, job: str, timeout_s: float) -> None:
        await self._run("track_restore", {"session": session, "path": str(path)}, job, timeout_s)

    async def prepare(self, quality: Quality, *, job: str, timeout_s: float) -> None:
        await self._run("track_prepare", {"quality": quality}, job, timeout_s)

    async def drop(self, session: str, *, job: str) -> None:
        await self._run("track_drop", {"session": session}, job, DROP_TIMEOUT_S)

    async def _run(self, task: str, params: dict[str, Any], job: str, timeout_s: float) -> dict[str, Any]:
        return await self._pool.run(task, params, timeout_s=timeout_s, job=job, finish=True)


def _masks(answer: dict[str, Any]) -> list[ObjectMask]:
    return [mask_from_json(mask) for mask in answer["masks"]]
