"""Weights that are wrong, damaged or armed cost the tools that need them and nothing else, and are named everywhere
where somebody looks: in the tool's error, in get_status and by doctor.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image
from tests.conftest import RunningWorker, serving
from tests.e2e.test_cli import run
from tests.e2e.tools import Agent, ToolFailure
from tests.fakes.sam2_weights import random_weights

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.settings import Settings

pytestmark = pytest.mark.timeout(200)

CASES = ["another hash", "truncated", "armed", "no such pair"]


def weights_settings(case: str, folder: Path) -> tuple[dict[str, Any], str]:
    """Settings with such weights, and the code that tells what is wrong."""
    if case == "no such pair":
        path = folder / "pair.onnx"
        path.write_bytes(b"no network")
        sha256 = hashlib.sha256(b"no network").hexdigest()
        both = {f"sam_onnx_{part}": path for part in ("encoder", "decoder")}
        return {"segmenter": "onnx", **both, **{f"{name}_sha256": sha256 for name in both}}, "weights_wrong"
    path, right = folder / "weights.pt", random_weights()
    if case == "truncated":
        path.write_bytes(right.path.read_bytes()[:10_000_000])
        sha256 = right.sha256
    else:
        # A pickle that would make a folder when it is loaded.
        path.write_bytes(b"cos\nmkdir\n(S'" + str(folder / "ran").encode("utf-8") + b"'\ntR.")
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest() if case == "armed" else "0" * 64
    settings = {"segmenter": "sam2", "sam_weights": path, "sam_weights_sha256": sha256}
    return settings, "weights_unsafe" if case == "armed" else "weights_wrong"


@pytest.fixture(params=CASES)
def wrong(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[RunningWorker, str]]:
    chosen, code = weights_settings(request.param, tmp_path)
    data_dir = tmp_path / "data"
    settings = Settings(port=0, token="t", data_dir=data_dir, ocr_processes=1, **chosen)  # type: ignore[arg-type]
    for worker in serving(settings, with_masks=False):
        yield worker, code


async def test_the_other_tools_work_and_the_reason_is_told(wrong: tuple[RunningWorker, str], tmp_path: Path) -> None:
    worker, code = wrong
    agent = Agent(worker)
    Image.new("RGB", (80, 40), "white").save(tmp_path / "a.png")
    handle = await agent.upload(tmp_path / "a.png")
    assert worker.services.sam_pool is not None
    with pytest.raises(WorkerError, match=code):
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(worker.services.sam_pool.wait_ready(), worker.loop))

    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"{worker.base_url}/readyz")).status_code == 200
    assert (await agent.call("read_text", source=handle))["coverage"]["done"] == 1
    with pytest.raises(ToolFailure, match=rf"^\[{code}\]") as failure:
        await agent.call("segment_image", source=handle, boxes=[[5, 5, 30, 20]])
    assert str(tmp_path) not in str(failure.value)

    status = await agent.call("get_status")
    assert status["ready"] is True
    missing = {row["tool"]: row["reason"] for row in status["not_available"]}
    assert code in missing["segment_image"]
    assert missing["track_video"]
    assert not [engine for engine in status["engines"] if engine["task"] in missing]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("case", ["another hash", "armed"])
def test_doctor_says_it(case: str, tmp_path: Path) -> None:
    chosen, code = weights_settings(case, tmp_path)
    environment = {f"SAM2_MCP_{name.upper()}": str(value) for name, value in chosen.items()}
    done = run("doctor", "--json", SAM2_MCP_DATA_DIR=str(tmp_path / "data"), SAM2_MCP_PORT="0", **environment)
    assert done.returncode == 1, done.stderr
    [failed] = [finding for finding in json.loads(done.stdout) if finding["state"] == "failed"]
    assert f"[{code}]" in failed["detail"]
    assert not (tmp_path / "ran").exists()
