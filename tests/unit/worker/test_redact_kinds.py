"""Which kind of file it is, also when one pretends to be another."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from sam2_mcp_worker.pipelines.redact_media import kind_of


def picture(kind: str) -> bytes:
    out, note = io.BytesIO(), PngInfo()
    note.add_text("note", "%PDF-1.7")
    more = {"pnginfo": note} if kind == "PNG" else {"comment": b"%PDF-1.7"} if kind in ("JPEG", "GIF") else {}
    Image.new("RGB", (9, 9), "red").save(out, kind, **more)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
def test_a_picture_is_one_whatever_is_written_beside_it(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(picture(kind))
    assert kind_of(path) == "image"


@pytest.mark.parametrize(
    ("data", "kind"), [(b"%PDF-1.7", "pdf"), (b"junk\n%PDF-1.4", "pdf"), (b"\0\0\0 ftypisom", "video")]
)
def test_documents_and_videos_are_told_by_their_first_bytes(data: bytes, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert kind_of(path) == kind
