"""Measures the local reader on generated pages: `python tests/bench/ocr/run.py [--json] [--pages N] [--kind NAME]...`.

Runs the child's own tasks in this process, tile by tile and merged, as the worker does. Seeds from 100 up are held
out: nothing was tuned on them. Needs kor.traineddata: SAM2_MCP_TESSDATA_DIR, or Debian's place for it.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "worker")]

from tests.bench.ocr import pages  # noqa: E402
from tests.bench.ocr.score import Read, Score, score_page  # noqa: E402

from sam2_mcp_worker.engines import local_ocr_child as child  # noqa: E402
from sam2_mcp_worker.engines.local_ocr import child_config, local_ocr_identity  # noqa: E402
from sam2_mcp_worker.media.pixels import PixelFile  # noqa: E402
from sam2_mcp_worker.media.seams import merge_readings  # noqa: E402
from sam2_mcp_worker.media.tiling import Box, plan_tiles  # noqa: E402
from sam2_mcp_worker.settings import Settings  # noqa: E402

FIRST_SEED = 0
KINDS: dict[str, Callable[[int], pages.Page]] = {
    "a4": pages.a4_page,
    "landing": pages.landing_page,
    "tilt-0.7": lambda seed: pages.tilted(pages.a4_page(seed), 0.7),
    "tilt-2": lambda seed: pages.tilted(pages.a4_page(seed), -2.0),
    "jpeg-q60": lambda seed: pages.jpeg(pages.landing_page(seed), 60),
}
TARGETS = {"a4": 0.015, "landing": 0.015, "tilt-0.7": 0.03, "tilt-2": 0.03}


@dataclass(frozen=True)
class QuadLine:
    """A TextLine that keeps its quad, for scoring tilted pages."""

    text: str
    box_xyxy_px: Box
    height_px: float
    confidence: float
    quad: list[list[float]]


@dataclass(frozen=True)
class Reading:
    lines: list[QuadLine]
    undetected_ink: list[Box]


def read_page(page: pages.Page, directory: Path) -> tuple[list[QuadLine], list[Box]]:
    assert page.rgb is not None
    path = directory / "page.rgb"
    path.write_bytes(page.rgb.tobytes())
    width, height = page.size_px
    pixels = PixelFile(path, width, height).to_params()
    tiles = plan_tiles(width, height)
    merged = merge_readings(tiles, [_reading(child.read_tile({"pixels": pixels, "rect": list(t)})) for t in tiles])
    return list(merged.lines), list(merged.undetected_ink)


def _reading(answer: dict[str, Any]) -> Reading:
    lines = [
        QuadLine(line["text"], tuple(line["box"]), line["height_px"], line["confidence"], line["quad"])
        for line in answer["lines"]
    ]
    return Reading(lines, [tuple(box) for box in answer["ink"]])


def measure(kind: str, seeds: Iterator[int] | range, directory: Path) -> dict[str, Any]:
    total, cpu_s, wall_s, mistakes = Score(), 0.0, 0.0, []
    for seed in seeds:
        page = KINDS[kind](seed)
        cpu, wall = time.process_time(), time.perf_counter()
        lines, ink = read_page(page, directory)
        cpu_s += time.process_time() - cpu
        wall_s += time.perf_counter() - wall
        total.add(score_page(page, [Read(line.text, line.quad, line.height_px) for line in lines], ink))
    mistakes = total.mistakes
    count = len(list(seeds))
    return {
        "kind": kind,
        "pages": count,
        "cer": round(total.cer, 4),
        "cer_fine": round(total.fine_cer, 4),
        "lines": total.lines,
        "dropped": total.dropped,
        "dropped_unseen": total.dropped_unseen,
        "false_ink": total.false_ink,
        "height_error_px_fine": _worst(total.fine_height_errors_px),
        "cpu_s_per_page": round(cpu_s / count, 2),
        "wall_s_per_page": round(wall_s / count, 2),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "mistakes": mistakes,
    }


def _worst(errors: list[float]) -> dict[str, float]:
    """Mean and 95th percentile of the absolute error of the font size."""
    off = sorted(abs(e) for e in errors) or [0.0]
    return {"mean": round(sum(off) / len(off), 2), "p95": round(off[int(0.95 * (len(off) - 1))], 2)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--pages", type=int, default=4)
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    parser.add_argument("--kind", action="append", choices=sorted(KINDS))
    parser.add_argument("--mistakes", action="store_true", help="also print each line that was read wrongly")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # fpdf2 and fontTools tell of every subset
    tessdata = Settings().find_tessdata()
    child.setup(child_config(tessdata, ["kor"]))
    results = []
    if not arguments.json:
        print(local_ocr_identity(tessdata, ["kor"]))
        print(
            "kind       pages  CER    fine   lines dropped unseen false-ink  size-err(mean/p95)  CPU s  wall s  RSS MB"
        )
    with tempfile.TemporaryDirectory() as directory:
        for kind in arguments.kind or list(KINDS):
            seeds = range(arguments.seed, arguments.seed + arguments.pages)
            result = measure(kind, seeds, Path(directory))
            mistakes = result.pop("mistakes")
            results.append(result)
            if not arguments.json:
                _print(result)
                if arguments.mistakes:
                    for expected, actual in mistakes:
                        print(f"    {expected}\n    {actual}\n")
    if arguments.json:
        print(json.dumps(results, ensure_ascii=False))
    missed = [r["kind"] for r in results if r["cer"] > TARGETS.get(r["kind"], 1.0) or r["dropped_unseen"]]
    return 1 if missed else 0


def _print(r: dict[str, Any]) -> None:
    off = r["height_error_px_fine"]
    print(
        f"{r['kind']:10} {r['pages']:5}  {r['cer']:5.2%}  {r['cer_fine']:5.2%}  {r['lines']:5} {r['dropped']:7} "
        f"{r['dropped_unseen']:6} {r['false_ink']:9}  {off['mean']:8} / {off['p95']:<8} {r['cpu_s_per_page']:7} "
        f"{r['wall_s_per_page']:7} {r['rss_mb']:7}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
