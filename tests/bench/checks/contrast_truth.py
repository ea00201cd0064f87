"""Contrast as measured, against known colours: `python -m tests.bench.checks.contrast_truth [--quick] [--check]`.

Lines of Korean print in drawn colours, in pictures as PNG and as JPEG of quality 60, and in PDF pages; per height how
often the true ratio lies in the range that was measured, and what would have been said at a minimum of 4.5.
"""

from __future__ import annotations

import argparse
import io
import random
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from tests.fakes.measured_documents import FACES, Drawn, Rgb

from sam2_mcp_worker.checks.contrast import ContrastRange, contrast_findings
from sam2_mcp_worker.checks.luminance import contrast_ratio
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.checks.rule_packs.sections import ContrastRules
from sam2_mcp_worker.checks.text_size import TextSize
from sam2_mcp_worker.media.pdf_child import pdf_render
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.text_contrast import text_contrast
from sam2_mcp_worker.pipelines.page_measures import MAX_SHARP_PIXELS, SHARP_TEXT_PX

NOTICE = "이 보험계약은 예금자보호법에 따라 보호됩니다 (1억원까지)"
MINIMUM = 4.5
WCAG = ContrastRules(basis="house", note="bench", min_ratio=MINIMUM)
READING = Reading("pdf", "pt", (ReadPage(1, "done", (ReadLine(NOTICE, "ocr", (0, 0, 1, 1), 9.0),)),))
# A range is right when the true ratio lies in it or this near to it.
NEAR = 0.05
PAGE_PT = (420.0, 120.0)


@dataclass(slots=True)
class Row:
    """One height in one kind of file."""

    inside: int = 0
    widths: list[float] = field(default_factory=list)
    said: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def colours(rng: random.Random) -> tuple[Rgb, Rgb]:
    """Text and ground as leaflets have them: grey or white print, print on a dark panel, tinted panels."""
    grey = rng.randrange(0, 190)
    return rng.choice(
        [
            ((grey, grey, grey), (255, 255, 255)),
            ((grey // 2, grey // 2, grey), (rng.randrange(225, 255), rng.randrange(225, 255), rng.randrange(225, 255))),
            ((255, 255, 255), tuple(rng.randrange(20, 150) for _ in range(3))),
        ]
    )  # type: ignore[return-value]


def picture(quality: int | None) -> Callable[[random.Random, float, Rgb, Rgb, Path], dict]:
    def measured(rng: random.Random, size_px: float, text: Rgb, ground: Rgb, folder: Path) -> dict:
        drawn = Image.new("RGB", (1300, 100), ground)
        font = ImageFont.truetype(str(FACES[rng.choice(["body", "light", "bold"])]), int(size_px))
        draw, at = ImageDraw.Draw(drawn), (20 + rng.random(), 20 + rng.random())
        draw.text(at, NOTICE, fill=text, font=font)
        box = draw.textbbox(at, NOTICE, font=font)
        if quality is not None:
            data = io.BytesIO()
            drawn.save(data, "JPEG", quality=quality)
            drawn = Image.open(data).convert("RGB")
        (folder / "p.rgb").write_bytes(np.asarray(drawn).tobytes())
        line = {"box": list(box), "height_px": size_px, "own_px": size_px}
        return text_contrast({"pixels": PixelFile(folder / "p.rgb", 1300, 100).to_params(), "lines": [line]})["lines"][
            0
        ]

    return measured


def page(rng: random.Random, size_pt: float, text: Rgb, ground: Rgb, folder: Path) -> dict:
    """A line of a text layer, drawn as finely as the pipeline draws it."""
    drawn = Drawn().page(*PAGE_PT).box(0, 0, *PAGE_PT, ground)
    drawn.text(20 + rng.random(), 60 + rng.random(), size_pt, NOTICE, text, rng.choice(["body", "light", "bold"]))
    file, (line,) = drawn.save(folder / "p.pdf"), drawn.lines[0]
    scale = min(SHARP_TEXT_PX / size_pt, (MAX_SHARP_PIXELS / (595 * 842)) ** 0.5)
    params = {"path": str(file.path), "page_number": 1, "px_per_pt": scale, "max_pixels": 10**8}
    size = pdf_render({**params, "out_path": str(folder / "p.rgb")})
    pixels = PixelFile(folder / "p.rgb", size["width_px"], size["height_px"])
    assert line.box_xyxy is not None
    asked = {"box": [side * scale for side in line.box_xyxy], "height_px": size_pt * scale, "own_px": size_pt * scale}
    return text_contrast({"pixels": pixels.to_params(), "lines": [asked]})["lines"][0]


KINDS: dict[str, tuple[Callable[[random.Random, float, Rgb, Rgb, Path], dict], str, tuple[int, ...]]] = {
    "PNG": (picture(None), "px", (8, 10, 12, 16, 24, 40)),
    "JPEG 60": (picture(60), "px", (8, 10, 12, 16, 24, 40)),
    "PDF": (page, "pt", (5, 6, 8, 12)),
}


def judged(told: dict) -> str:
    contrast = ContrastRange(told["low"], told["high"])
    (found,) = contrast_findings(WCAG, READING, {(1, 0): TextSize(9, "pt", 0)}, {(1, 0): contrast}, {"x": [[(1, 0)]]})
    return found.verdict


def rows(lines: int) -> Iterator[tuple[str, str, Row]]:
    with tempfile.TemporaryDirectory() as folder:
        for kind, (measure, unit, heights) in KINDS.items():
            for height in heights:
                rng, row = random.Random(f"{kind} {height}"), Row()
                for _ in range(lines if kind != "PDF" else max(5, lines // 5)):
                    add(row, measure, rng, height, Path(folder))
                yield kind, f"{height} {unit}", row


def add(row: Row, measure: Callable[..., dict], rng: random.Random, height: int, folder: Path) -> None:
    text, ground = colours(rng)
    truth, told = contrast_ratio(text, ground), measure(rng, height, text, ground, folder)
    verdict = judged(told)
    row.inside += told["low"] <= truth * (1 + NEAR) and told["high"] >= truth * (1 - NEAR)
    row.widths.append(told["high"] / told["low"])
    row.said[verdict] += 1
    if (verdict == "met" and truth < MINIMUM * (1 - NEAR)) or (verdict == "not_met" and truth > MINIMUM * (1 + NEAR)):
        row.wrong.append(f"{verdict}, true {truth:.2f}, measured {told['low']}-{told['high']}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="15 lines a row instead of 100")
    parser.add_argument("--check", action="store_true", help="fail on a wrong verdict")
    options = parser.parse_args()
    wrong: list[str] = []
    print("| file | height | lines | truth in the range | highest / lowest, median | met | review | not met | wrong |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind, height, row in rows(15 if options.quick else 100):
        lines, said = len(row.widths), row.said
        print(
            f"| {kind} | {height} | {lines} | {row.inside} | {statistics.median(row.widths):.2f} "
            f"| {said['met']} | {said['review']} | {said['not_met']} | {len(row.wrong)} |",
            flush=True,
        )
        wrong += [f"{kind} {height}: {one}" for one in row.wrong]
    print("\n".join(wrong))
    return 1 if options.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
