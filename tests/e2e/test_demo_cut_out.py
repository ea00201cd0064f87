"""The demo's last step on real programs: an object is cut out and redacted, or it is said why not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image
from tests.conftest import ROOT, RunningWorker, serving
from tests.fakes.shapes import Scene, iou, scene
from tests.models import OnnxPair

from sam2_mcp_worker.demo.cut_out import CutOut, box_px, cut_and_redact
from sam2_mcp_worker.demo.processes import free_port, program, python_command, wait_until_ready
from sam2_mcp_worker.demo.session import DemoResult, StationSession
from sam2_mcp_worker.demo.walk import open_session
from sam2_mcp_worker.demo.weights import weights_for_demo
from sam2_mcp_worker.segmentation import SAM2_PACKAGES, sam2_packages_missing
from sam2_mcp_worker.settings import Settings


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port, log = free_port(), tmp_path_factory.mktemp("station") / "log"
    command = python_command(
        str(ROOT / "deploy" / "station" / "main.py"), "--port", str(port), "--log-level", "warning"
    )
    with program("station", command, log, {}) as process:
        wait_until_ready("station", f"http://127.0.0.1:{port}/health", process, log)
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def drawn() -> Scene:
    return scene()


def cut(station: str, worker: RunningWorker, drawn: Scene, box: tuple[int, ...], folder: Path) -> tuple[Any, list[str]]:
    """The demo's result, and what it said."""
    drawn.picture.save(folder / "cover.png")
    said: list[str] = []
    result = DemoResult()
    with httpx.Client(base_url=station, trust_env=False, timeout=10) as client:
        session: StationSession = open_session(client, worker.base_url, result, said.append)
        wanted = CutOut(folder / "cover.png", (box[0], box[1], box[2], box[3]), "star")
        cut_and_redact(session, worker.base_url, wanted, folder, said.append)
    return result, said


def test_the_object_is_cut_out_redacted_and_verified(
    station: str, onnx_pair: OnnxPair, drawn: Scene, tmp_path: Path
) -> None:
    settings = Settings(port=0, data_dir=tmp_path / "data", ocr_processes=1, **onnx_pair.settings())
    for worker in serving(settings):
        result, said = cut(station, worker, drawn, drawn.boxes[1], tmp_path)
    assert result.cut_out["engine"].startswith("sam-onnx/")
    assert result.cut_out["redaction"] == "done"
    assert any("star cut out by sam-onnx/" in line for line in said)
    assert any("redact_media: done, verified:" in line for line in said)
    assert sorted(Path(file).name for file in result.files) == [
        "cover-mask.png",
        "cover-objects.jpg",
        "cover-objects.json",
        "cover-redacted.png",
    ]
    with Image.open(tmp_path / "cover-redacted.png") as redacted:
        black = ~np.asarray(redacted.convert("RGB")).any(axis=-1)
    assert np.count_nonzero(drawn.truths[1] & ~black) < 0.02 * np.count_nonzero(drawn.truths[1])
    assert iou(black, drawn.truths[1]) > 0.8  # the mask is covered with a margin


def test_without_an_engine_the_demo_says_so_and_redacts_the_box(station: str, drawn: Scene, tmp_path: Path) -> None:
    for worker in serving(Settings(port=0, data_dir=tmp_path / "data", ocr_processes=1, segmenter="off")):
        result, said = cut(station, worker, drawn, drawn.boxes[1], tmp_path)
    assert "switched off" in result.cut_out["not_available"]
    assert any("no object was cut out" in line for line in said)
    assert result.cut_out["redaction"] == "done"
    assert [Path(file).name for file in result.files] == ["cover-redacted.png"]


def test_boxes_of_the_layout_are_rounded_out_to_pixels() -> None:
    assert box_px((1.0, 2.0, 3.0, 4.1), 150 / 72) == (2, 4, 7, 9)


def test_a_worker_without_segmentation_is_told_before_it_starts(tmp_path: Path) -> None:
    said: list[str] = []
    folder = weights_for_demo(Settings(data_dir=tmp_path, segmenter="off"), said.append)
    assert folder == tmp_path / "models"
    assert len(said) == 1 and "switched off" in said[0]


def test_a_pair_that_is_chosen_fetches_nothing(tmp_path: Path, onnx_pair: OnnxPair) -> None:
    said: list[str] = []
    weights_for_demo(Settings(data_dir=tmp_path, **onnx_pair.settings()), said.append)
    assert said == []


def test_weights_that_cannot_be_fetched_leave_the_pair_that_is_there(tmp_path: Path, onnx_pair: OnnxPair) -> None:
    if sam2_packages_missing():
        pytest.skip(f"needs {', '.join(SAM2_PACKAGES)}: without them nothing is fetched")
    said: list[str] = []
    settings = Settings(data_dir=tmp_path, **onnx_pair.settings() | {"segmenter": "auto"})
    weights_for_demo(settings, said.append, mirror=f"http://127.0.0.1:{free_port()}")
    assert said[0].startswith("fetching sam2.1_hiera_tiny, ")
    assert "cannot be fetched" in said[1]
    assert len(said) == 2
    assert not list((tmp_path / "models").rglob("*.pt*"))
