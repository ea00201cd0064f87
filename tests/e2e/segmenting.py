"""What tests of masks share: pictures on the disk, masks as they were fetched, work inside the worker."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from tests.conftest import RunningWorker

# Exact shapes reach 0.977-0.986 with this network (reference/sam.md 4).
GOOD_IOU = 0.95


def saved(picture: Image.Image, path: Path, **options: Any) -> Path:
    picture.save(path, **options)
    return path


def fetched(worker: RunningWorker, uri: str) -> bytes:
    handle = uri.removeprefix("artifact://")
    with httpx.Client(trust_env=False, headers=worker.headers, timeout=30) as client:
        return client.get(f"{worker.base_url}/artifacts/{handle}").raise_for_status().content


def mask_of(worker: RunningWorker, found: dict[str, Any]) -> NDArray[np.bool_]:
    with Image.open(io.BytesIO(fetched(worker, found["mask"]))) as picture:
        assert picture.format == "PNG"
        return np.asarray(picture.convert("L")) > 127


async def on_loop(worker: RunningWorker, work: Coroutine[Any, Any, Any]) -> Any:
    """Run something inside the worker."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, worker.loop))
