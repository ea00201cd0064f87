"""The engine that cuts masks is chosen from settings and disk; what lacks is said with the command that brings it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sam2_mcp_worker import segmentation
from sam2_mcp_worker.models.manifest import MOBILE_SAM, find_model
from sam2_mcp_worker.segmentation import choose
from sam2_mcp_worker.settings import Settings

SHA = "AB" * 32


def settings(tmp_path: Path, **values: Any) -> Settings:
    return Settings(data_dir=tmp_path, **values)


def put(folder: Path, name: str) -> None:
    """Files of the right sizes, sparse, whose content nobody looks at here."""
    model = find_model(name)
    assert model is not None
    for path, file in zip(model.paths(folder / "models"), model.files, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            out.truncate(file.size_bytes)


def test_without_weights_there_is_no_engine_and_the_mend_is_named(tmp_path: Path) -> None:
    choice = choose(settings(tmp_path))
    assert choice.engine is None
    assert choice.no_masks is not None
    assert "models fetch sam2.1_hiera_tiny" in choice.no_masks.public_text
    assert "restarts the worker" in choice.no_masks.public_text
    assert choice.no_tracking is not None
    assert choice.no_tracking.code == choice.no_masks.code == "not_available"


def test_sam2_is_taken_when_packages_and_weights_are_there(tmp_path: Path) -> None:
    put(tmp_path, "sam2.1_hiera_tiny")
    put(tmp_path, MOBILE_SAM)
    choice = choose(settings(tmp_path))
    assert (choice.engine, choice.no_masks, choice.no_tracking) == ("sam2", None, None)
    assert choice.weights["weights"].endswith("sam2.1_hiera_tiny.pt")
    assert choice.weights["sha256"].startswith("7402e0d8")


def test_the_fetched_pair_stands_in_when_sam2_lacks_weights_and_only_tracking_is_missing(tmp_path: Path) -> None:
    put(tmp_path, MOBILE_SAM)
    choice = choose(settings(tmp_path))
    assert (choice.engine, choice.no_masks) == ("onnx", None)
    assert choice.weights["decoder"].endswith("sam.onnx")
    assert choice.no_tracking is not None
    assert "tracking needs SAM 2" in choice.no_tracking.what


def test_a_pair_of_ones_own_comes_before_the_fetched_one(tmp_path: Path) -> None:
    put(tmp_path, MOBILE_SAM)
    own = {"sam_onnx_encoder": tmp_path / "e.onnx", "sam_onnx_decoder": tmp_path / "d.onnx"}
    hashes = {f"{name}_sha256": SHA for name in own}
    choice = choose(settings(tmp_path, segmenter="onnx", **own, **hashes))
    assert choice.weights == {
        "encoder": str(tmp_path / "e.onnx"),
        "encoder_sha256": SHA.lower(),
        "decoder": str(tmp_path / "d.onnx"),
        "decoder_sha256": SHA.lower(),
    }
    assert choice.no_tracking is not None


def test_what_is_switched_off_or_forced_is_never_replaced(tmp_path: Path) -> None:
    put(tmp_path, MOBILE_SAM)
    assert choose(settings(tmp_path, segmenter="off")).engine is None
    forced = choose(settings(tmp_path, segmenter="sam2"))
    assert forced.engine is None
    put(tmp_path, "sam2.1_hiera_tiny")
    assert choose(settings(tmp_path, segmenter="onnx")).engine == "onnx"
    no_tracking = choose(settings(tmp_path, segmenter="onnx")).no_tracking
    assert no_tracking is not None
    assert "SAM2_MCP_SEGMENTER=auto" in no_tracking.public_text


def test_packages_that_are_not_installed_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segmentation, "SAM2_PACKAGES", ("torch_of_another_machine",))
    put(tmp_path, "sam2.1_hiera_tiny")
    missing = choose(settings(tmp_path)).no_masks
    assert missing is not None
    assert "torch_of_another_machine" in missing.what
    assert "[worker,sam]" in missing.public_text


def test_own_weights_that_are_not_there_are_named_without_their_folder(tmp_path: Path) -> None:
    absent = settings(tmp_path, sam_weights=tmp_path / "mine.pt", sam_weights_sha256=SHA)
    missing = choose(absent).no_masks
    assert missing is not None
    assert "mine.pt" in missing.what
    assert str(tmp_path) not in missing.public_text
    (tmp_path / "mine.pt").write_bytes(b"x")
    assert choose(absent).weights["sha256"] == SHA.lower()


@pytest.mark.parametrize(
    "values",
    [
        {"sam_weights": "w.pt"},
        {"sam_weights": "w.pt", "sam_weights_sha256": "beef"},
        {"sam_onnx_encoder": "e.onnx", "sam_onnx_encoder_sha256": SHA},
    ],
)
def test_own_weights_without_a_hash_or_a_half_pair_are_refused_at_the_start(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError, match="SAM2_MCP_SAM_"):
        settings(tmp_path, **values)
