"""Which runtime an encoder runs on, what is recorded of its check, and how pictures are squeezed into its square."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.fakes.sam2_weights import dwarf_network
from torchvision.transforms import Resize

from sam2_mcp_worker.engines import sam2_encoder
from sam2_mcp_worker.engines.sam2_encoder import Check, EncoderKind, Sam2Encoder, _int8_range, normalised, squeeze
from sam2_mcp_worker.engines.sam2_encoder_graph import INT8_RANGE, INT8_RANGE_NO_VNNI

SIDE_PX = 128
FP32, INT8 = EncoderKind(SIDE_PX, "fp32"), EncoderKind(SIDE_PX, "int8")


@pytest.fixture(scope="module")
def network() -> Any:
    return dwarf_network()


@contextmanager
def counting(network: Any) -> Iterator[list[int]]:
    """Notes the side of every picture that torch encodes."""
    sides: list[int] = []
    hook = network.image_encoder.register_forward_hook(lambda _, inputs, __: sides.append(inputs[0].shape[-1]))
    yield sides
    hook.remove()


def encoder_of(network: Any, folder: Path, sha256: str = "ab" * 32) -> Sam2Encoder:
    return Sam2Encoder(network, sha256=sha256, threads=1, records_dir=folder)


def noise(height: int, width: int) -> NDArray[np.uint8]:
    return np.random.default_rng(height + width).integers(0, 256, (height, width, 3), dtype=np.uint8)


def in_torch(network: Any, square: NDArray[np.uint8]) -> list[torch.Tensor]:
    network.set_imgsz((len(square), len(square)))
    with torch.inference_mode():
        found: list[torch.Tensor] = network.forward_image(normalised(square))["backbone_fpn"]
    return found


def largest_difference(ours: Any, theirs: Any) -> float:
    return max(float((a - b).abs().max()) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("size", [(128, 128), (90, 200), (301, 17)])
def test_features_are_those_of_torch_for_the_same_squeezed_picture(
    network: Any, tmp_path: Path, size: tuple[int, int]
) -> None:
    encoder, rgb = encoder_of(network, tmp_path), noise(*size)
    found = encoder.features(rgb, SIDE_PX, "fp32")
    assert largest_difference(found, in_torch(network, squeeze(rgb, SIDE_PX))) < 1e-4
    assert encoder.checks[FP32].max_error < 1e-4
    assert encoder.on_torch == {}


def test_an_encoder_is_checked_once_and_the_next_process_believes_the_record(network: Any, tmp_path: Path) -> None:
    with counting(network) as encoded:
        for _ in range(2):
            encoder_of(network, tmp_path / "checks").features(noise(64, 64), SIDE_PX, "int8")
    assert encoded == [SIDE_PX]
    [record] = (tmp_path / "checks").iterdir()
    assert 0 < json.loads(record.read_text(encoding="utf-8"))["relative_error"] < 0.05


def test_a_record_counts_only_for_its_weights_and_precision(network: Any, tmp_path: Path) -> None:
    encoder_of(network, tmp_path).prepare([FP32], budget_s=60)
    with counting(network) as encoded:
        encoder_of(network, tmp_path).prepare([FP32, INT8], budget_s=60)
        encoder_of(network, tmp_path, sha256="cd" * 32).prepare([FP32], budget_s=60)
    assert len(encoded) == 2
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("content", ["", "{", "[]", '{"max_error": null, "relative_error": 0}', '{"max_error": 0}'])
def test_a_damaged_record_is_made_again(network: Any, tmp_path: Path, content: str) -> None:
    encoder_of(network, tmp_path).prepare([FP32], budget_s=60)
    [record] = tmp_path.iterdir()
    record.write_text(content, encoding="utf-8")
    with counting(network) as encoded:
        encoder_of(network, tmp_path).features(noise(64, 64), SIDE_PX, "fp32")
    assert encoded == [SIDE_PX]
    assert json.loads(record.read_text(encoding="utf-8"))["max_error"] < 1e-4


def test_a_folder_that_cannot_be_written_costs_a_check_and_nothing_else(
    network: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    encoder = encoder_of(network, tmp_path / "file" / "checks")
    with caplog.at_level(logging.WARNING):
        encoder.features(noise(64, 64), SIDE_PX, "fp32")
    assert encoder.on_torch == {}
    assert "not recorded" in caplog.text


def test_a_full_disk_leaves_nothing_half_written(network: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    encoder = encoder_of(network, tmp_path)
    encoder.features(noise(64, 64), SIDE_PX, "fp32")
    assert FP32 in encoder.checks
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [FP32, INT8])
def test_an_encoder_that_differs_too_much_is_left_to_torch_and_said_so(
    network: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: EncoderKind
) -> None:
    monkeypatch.setattr(sam2_encoder, "MAX_ERROR_FP32", 0.0)
    monkeypatch.setattr(sam2_encoder, "MAX_RELATIVE_INT8", 0.0)
    encoder, rgb = encoder_of(network, tmp_path), noise(SIDE_PX, SIDE_PX)
    found = encoder.features(rgb, *(kind.side_px, kind.precision))
    assert largest_difference(found, in_torch(network, rgb)) == 0
    assert "differs from torch" in encoder.on_torch[kind]


def test_an_encoder_that_cannot_be_opened_is_left_to_torch_and_said_so(
    network: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sam2_encoder, "build_encoder", lambda *_, **__: b"no model")
    encoder, rgb = encoder_of(network, tmp_path), noise(SIDE_PX, SIDE_PX)
    for _ in range(2):
        assert largest_difference(encoder.features(rgb, SIDE_PX, "fp32"), in_torch(network, rgb)) == 0
    assert list(encoder.on_torch) == [FP32]
    assert list(tmp_path.iterdir()) == []


def test_a_difference_that_is_no_number_is_never_good() -> None:
    nan = float("nan")
    assert not Check(nan, nan).good_for("fp32")
    assert not Check(nan, nan).good_for("int8")
    assert Check(1e-5, 1e-6).good_for("fp32")
    assert Check(0.1, 0.02).good_for("int8")


def test_what_does_not_fit_the_time_is_checked_when_it_is_used(network: Any, tmp_path: Path) -> None:
    encoder = encoder_of(network, tmp_path)
    with counting(network) as encoded:
        encoder.prepare([FP32], budget_s=0)
        assert encoded == []
        encoder.features(noise(64, 64), SIDE_PX, "fp32")
    assert encoded == [SIDE_PX]


@pytest.mark.parametrize(
    ("processor", "int8_range"),
    [
        ("flags : avx avx2 fma", INT8_RANGE_NO_VNNI),
        ("flags : avx2 avx_vnni", INT8_RANGE),
        ("Features : asimd", INT8_RANGE),
    ],
)
def test_int8_weights_are_smaller_where_their_products_would_overflow(processor: str, int8_range: int) -> None:
    assert _int8_range(processor) == int8_range


@pytest.mark.parametrize("size", [(1, 1), (1, 900), (333, 200), (128, 128), (4000, 3)])
def test_squeezing_is_what_the_reference_does_to_one_grey_level(size: tuple[int, int]) -> None:
    rgb = noise(*size)
    planes = torch.from_numpy(rgb).permute(2, 0, 1).float()
    wanted = Resize((SIDE_PX, SIDE_PX))(planes).permute(1, 2, 0).numpy()
    assert float(np.abs(squeeze(rgb, SIDE_PX) - wanted).max()) <= 1.01


def test_a_read_only_window_of_a_picture_is_squeezed_and_left_alone(tmp_path: Path) -> None:
    whole = noise(200, 300)
    (tmp_path / "pixels").write_bytes(whole.tobytes())
    window = np.memmap(tmp_path / "pixels", np.uint8, "r", shape=(200, 300, 3))[20:120, 30:230]
    assert np.array_equal(squeeze(window, SIDE_PX), squeeze(whole[20:120, 30:230].copy(), SIDE_PX))
