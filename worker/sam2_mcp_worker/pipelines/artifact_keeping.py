"""The same artifact for the same content: a repeated call makes nothing anew and links to what it linked before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.services import Services


async def kept_artifact(services: Services, key: str, make: Callable[[], Awaitable[Artifact]]) -> Artifact:
    """The artifact that is kept under a key of the result cache, as long as it is there; else a new one."""

    async def compute() -> str:
        return (await make()).handle

    handle = await services.cache.get_or_compute(key, compute, fresh=services.artifacts.holds)
    return (await asyncio.to_thread(services.artifacts.get, handle))[0]
