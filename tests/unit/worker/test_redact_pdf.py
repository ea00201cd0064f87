"""PDF redaction on generated files: what was there is in no byte of the output, and the rest looks as before.

The checks here are written anew, on plain zlib, pikepdf and pdfium, and share no code with those of the worker.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pikepdf
import pypdfium2
import pytest
from tests.fakes.pdf_desk import Sample
from tests.fakes.redaction_pdfs import CASES
from tests.fakes.redaction_pdfs_pictures import SIZE_PX

from sam2_mcp_worker.media.pdf import PdfFile
from sam2_mcp_worker.media.pdf_redaction import PdfRedaction, PdfRegion, redact_pdf
from sam2_mcp_worker.media.redact_child import TASKS, setup

PX_PER_PT = 1.0
MARGIN_PX = 2
# Levels of 255: a moved edge shades its pixels, a lost line or letter changes them wholly.
TOLERANCE = 64
MEAN_TOLERANCE = 3.0


class InThisProcess:
    """Runs the tasks of the redact children here, so that coverage counts them; the pool is tried elsewhere."""

    async def run(self, task: str, params: dict[str, Any], *, timeout_s: float, job: str) -> dict[str, Any]:
        assert timeout_s > 0 and job
        return TASKS[task](params)


@pytest.fixture(scope="module", autouse=True)
def _prepared() -> None:
    setup({})


async def redacted(sample: Sample, folder: Path) -> tuple[Path, PdfRedaction]:
    source = folder / "in.pdf"
    source.write_bytes(sample.data)
    regions = [PdfRegion(number, (x0, y0, x1, y1)) for number, x0, y0, x1, y1 in sample.regions]
    done = await redact_pdf(
        InThisProcess(), PdfFile(source, sample.password), regions,
        words=sample.gone, out_path=folder / "out.pdf", job="test",
    )  # fmt: skip
    return source, done


def encodings(word: str) -> list[bytes]:
    forms = [word.encode("utf-8"), word.encode("utf-16-be"), word.encode("utf-16-le"), word.encode("cp949")]
    return [variant for form in forms for variant in (form, form.hex().encode(), form.hex().upper().encode())]


def byte_streams(path: Path) -> Iterator[bytes]:
    """The file itself, every stream as zlib unpacks it and as qpdf does, every string of every object."""
    data = path.read_bytes()
    yield data
    for match in re.finditer(rb"stream\r?\n", data):
        try:
            yield zlib.decompressobj().decompress(data[match.end() :])
        except zlib.error:
            continue
    with pikepdf.open(path) as pdf:
        for item in pdf.objects:
            if isinstance(item, pikepdf.Stream):
                try:
                    yield item.read_bytes()
                except pikepdf.PdfError:
                    yield item.read_raw_bytes()
            yield item.unparse() if not isinstance(item, pikepdf.Stream) else repr(dict(item.items())).encode()


def without_syntax(data: bytes) -> bytes:
    """What is left when strings set in pieces are pushed together."""
    return re.sub(rb"[^0-9A-Za-z\x80-\xff]|-?\d+(?:\.\d+)?(?=[\s(<])", b"", data)


def pages_of(path: Path, password: str = "") -> list[tuple[str, np.ndarray]]:
    """Text and picture of each page."""
    document = pypdfium2.PdfDocument(path, password=password or None)
    document.init_forms()
    pages = []
    for page in document:
        bitmap = page.render(scale=PX_PER_PT, may_draw_forms=True)
        pages.append((page.get_textpage().get_text_range(), np.array(bitmap.to_numpy()[:, :, :3])))
    document.close()
    return pages


def box_px(box: tuple[float, ...], grow: int) -> tuple[slice, slice]:
    x0, y0, x1, y1 = (side * PX_PER_PT for side in box)
    return (
        slice(max(0, int(y0) - grow), max(0, int(np.ceil(y1)) + grow)),
        slice(max(0, int(x0) - grow), max(0, int(np.ceil(x1)) + grow)),
    )


@pytest.mark.parametrize("name", CASES)
async def test_redacted_words_are_in_no_byte_and_the_rest_looks_as_before(name: str, tmp_path: Path) -> None:
    sample = CASES[name]()
    source, done = await redacted(sample, tmp_path)

    for data in byte_streams(done.path):
        pushed = without_syntax(data)
        for word in sample.gone:
            assert not any(form in data for form in encodings(word)), f"{word} in {data[:80]!r}"
            assert word.encode() not in pushed
    before, after = pages_of(source, sample.password), pages_of(done.path)
    text = "".join(text for text, _ in after)
    assert not any(word in "".join(text.split()) for word in sample.gone)
    assert all(word in text for word in sample.kept)
    assert len(before) == len(after)
    assert any(page.rasterised for page in done.pages) == sample.rasterised
    for number, ((_, old), (_, new)) in enumerate(zip(before, after, strict=True), 1):
        assert old.shape == new.shape
        difference = np.abs(old.astype(int) - new.astype(int)).max(axis=2)
        for region in sample.regions:
            if region[0] == number:
                assert np.ptp(new[box_px(region[1:], -MARGIN_PX)]) == 0, "the region is one colour"
                difference[box_px(region[1:], MARGIN_PX + int(sample.reach_pt))] = 0
        assert difference.mean() < MEAN_TOLERANCE
        if not sample.rasterised:
            assert difference.max() < TOLERANCE


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("picture_") and "words" not in name])
async def test_samples_of_pictures_under_the_region_are_gone_from_the_data(name: str, tmp_path: Path) -> None:
    sample = CASES[name]()
    _, done = await redacted(sample, tmp_path)
    with pikepdf.open(done.path) as pdf:
        shown = pdf.pages[0].resources.get("/XObject", pikepdf.Dictionary()).values()
        pictures = [picture for picture in shown if picture.get("/Width") == SIZE_PX[0]]
        shapes = [*pictures, *(picture.SMask for picture in pictures if "/SMask" in picture)]
        if name == "picture_shown_twice_on_a_page":
            assert len(shapes) == 2
            shapes = [shape for shape in shapes if _left_part_is_flat(shape)]
            assert len(shapes) == 1
        assert all(_left_part_is_flat(shape) for shape in shapes)
        assert bool(shapes) == (done.pages[0].pictures > 0)


def _left_part_is_flat(picture: Any) -> bool:
    image = np.asarray(pikepdf.PdfImage(picture).as_pil_image().convert("RGB")).astype(int)
    left, right = image[38:68, 5:190], image[:, 210:]
    if picture.get("/ColorSpace") is not None and "/SMask" not in picture:
        assert np.ptp(right) > 0, "the part outside is kept"
    return int(np.ptp(left.reshape(-1, 3), axis=0).max()) == 0
