"""The tasks on decoded pictures: what they write, and that the comparison sees every kind of slip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.image_child import image_decode
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.redact_image import TASKS, image_compare, image_cover, image_traits

AREA = {"box": [10, 5, 40, 25], "mask_path": None}


def raw(path: Path, rgb: np.ndarray) -> dict[str, Any]:
    path.write_bytes(rgb.tobytes())
    return PixelFile(path, rgb.shape[1], rgb.shape[0]).to_params()


@pytest.fixture
def source(tmp_path: Path) -> dict[str, Any]:
    return raw(tmp_path / "source.rgb", np.random.default_rng(3).integers(1, 256, (50, 80, 3), np.uint8))


def covered(tmp_path: Path, source: dict[str, Any], method: str = "fill") -> tuple[Path, dict[str, Any]]:
    """The written file, and its pixels as the decoder gives them."""
    out = tmp_path / "out.png"
    params = {"pixels": source, "areas": [AREA], "method": method, "work_path": str(tmp_path / "w")}
    assert image_cover({**params, "out_path": str(out)}) == {"size_bytes": out.stat().st_size}
    assert not (tmp_path / "w").exists()
    image_decode({"path": str(out), "out_path": str(tmp_path / "after.rgb"), "max_pixels": 10**6})
    return out, PixelFile(tmp_path / "after.rgb", source["width_px"], source["height_px"]).to_params()


def compared(before: dict[str, Any], after: dict[str, Any], file: Path, areas: list[Any] | None = None) -> Any:
    return image_compare({"before": before, "after": after, "areas": areas or [AREA], "file": str(file)})


def test_a_filled_picture_passes_the_comparison(tmp_path: Path, source: dict[str, Any]) -> None:
    out, after = covered(tmp_path, source)
    assert compared(source, after, out) == {
        "outside_px": 80 * 50 - 30 * 20,
        "outside_changed_px": 0,
        "areas": [{"area_px": 600, "changed_px": 600, "filled_px": 600}],
        "foreign_chunks": [],
    }


@pytest.mark.parametrize("method", ["pixelate", "blur"])
def test_the_other_methods_change_inside_only(tmp_path: Path, source: dict[str, Any], method: str) -> None:
    out, after = covered(tmp_path, source, method)
    check = compared(source, after, out)
    assert check["outside_changed_px"] == 0
    assert check["areas"][0]["changed_px"] > 590
    assert check["areas"][0]["filled_px"] == 0


def test_one_wrong_pixel_is_seen_outside_and_inside(tmp_path: Path, source: dict[str, Any]) -> None:
    out, after = covered(tmp_path, source)
    rgb = PixelFile.from_params(after).map_rgb().copy()
    rgb[49, 79, 2] ^= 1
    rgb[5, 10, 0] = 1
    check = compared(source, raw(tmp_path / "slip.rgb", rgb), out)
    assert check["outside_changed_px"] == 1
    assert check["areas"][0]["filled_px"] == 599


def test_an_area_outside_of_the_picture_has_no_check(tmp_path: Path, source: dict[str, Any]) -> None:
    out, after = covered(tmp_path, source)
    outside = {"box": [200, 200, 210, 210], "mask_path": None}
    assert compared(source, after, out, [AREA, outside])["areas"][1] is None


def test_an_output_of_another_size_is_refused(tmp_path: Path, source: dict[str, Any]) -> None:
    out, _ = covered(tmp_path, source)
    with pytest.raises(WorkerError) as caught:
        compared(source, raw(tmp_path / "small.rgb", np.zeros((5, 5, 3), np.uint8)), out)
    assert caught.value.code == "redaction_unverified"


def test_a_damaged_mask_leaves_no_file(tmp_path: Path, source: dict[str, Any]) -> None:
    area = {"box": [0, 0, 5, 5], "mask_path": str(tmp_path / "gone.png")}
    params = {"pixels": source, "areas": [area], "method": "fill", "work_path": str(tmp_path / "w")}
    with pytest.raises(WorkerError):
        image_cover({**params, "out_path": str(tmp_path / "out.png")})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.rgb"]


def test_a_full_disk_is_named_and_leaves_no_file(tmp_path: Path, source: dict[str, Any]) -> None:
    params = {"pixels": source, "areas": [AREA], "method": "fill", "work_path": str(tmp_path / "no" / "w")}
    with pytest.raises(WorkerError) as caught:
        image_cover({**params, "out_path": str(tmp_path / "out.png")})
    assert caught.value.code == "no_space"
    assert not (tmp_path / "out.png").exists()


def test_traits_name_what_pixels_do_not_keep(tmp_path: Path) -> None:
    about, exif = PngImagePlugin.PngInfo(), Image.Exif()
    about.add_text("Author", "somebody")
    exif[0x010E] = "a description"
    path = tmp_path / "a.png"
    Image.new("RGBA", (5, 5)).save(path, pnginfo=about, exif=exif, icc_profile=b"profile")
    assert image_traits({"path": str(path)}) == {
        "format": "PNG",
        "mode": "RGBA",
        "carried": ["EXIF", "colour profile", "text"],
        "alpha": True,
    }


def test_a_plain_picture_has_no_traits(tmp_path: Path) -> None:
    Image.new("L", (5, 5)).save(tmp_path / "a.bmp")
    traits = TASKS["image_traits"]({"path": str(tmp_path / "a.bmp")})
    assert traits == {"format": "BMP", "mode": "L", "carried": [], "alpha": False}
