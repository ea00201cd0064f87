"""`demo`: makes a leaflet (or takes yours) and sends it down the whole road: station, bridge, worker."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.settings import Settings

if TYPE_CHECKING:
    from sam2_mcp_worker.demo.cut_out import CutOut

# The station lives in the checkout and not in the wheel: deploy/station beside worker/.
STATION = Path(__file__).resolve().parents[3] / "deploy" / "station" / "main.py"


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo", help="read and judge a made-up nine-page leaflet through station, bridge and worker"
    )
    parser.add_argument("--source", type=Path, help="a PDF or image of yours instead of the leaflet")
    parser.add_argument("--out", type=Path, default=Path("demo-out"), help="folder for the report and the logs")
    parser.add_argument("--station", type=Path, default=STATION, help="the minimal station's main.py")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Print progress on stderr and the table on stdout; 1 when a page was lost."""
    from sam2_mcp_worker.demo.judging import verdicts
    from sam2_mcp_worker.demo.walk import table, walk
    from sam2_mcp_worker.demo.weights import weights_for_demo

    if not arguments.station.is_file():
        raise WorkerError(
            "station_missing",
            f"{arguments.station} is not there",
            next_step="run from a checkout, or give --station PATH",
        )
    out_dir = arguments.out.resolve()
    out_dir.mkdir(parents=True, exist_ok=True)
    started_s = time.monotonic()

    def say(text: str) -> None:
        sys.stderr.write(f"[{time.monotonic() - started_s:5.1f} s] {text}\n")

    if (out_dir / "data").exists():
        say(f"what earlier runs read is kept in {arguments.out}/data and answered at once; delete it to read afresh")
    source, picture, cut_out, filed = _inputs(arguments.source, out_dir, say)
    models_dir = weights_for_demo(Settings(), say) if cut_out is not None else None
    station = arguments.station.resolve()
    result = walk(source, picture, station, out_dir, say, cut_out=cut_out, filed=filed, models_dir=models_dir)
    accounted = sorted(page["page_number"] for page in result.pages)
    if arguments.json:
        sys.stdout.write(json.dumps(dataclasses.asdict(result), ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(f"{table(result)}\n\n" if result.pages else "")
        sys.stdout.write(f"{verdicts(result.phrases, result.rules, result.figures)}\n\nlabel: {result.label}\n\n")
        sys.stdout.write(
            f"longest call {max(result.calls_s)} s of 27; worker and children {result.idle_mb} MB idle, "
            f"{result.peak_mb} MB at their peaks; {time.monotonic() - started_s:.1f} s in all\n"
            + "".join(f"written: {path}\n" for path in result.files)
        )
    return int(accounted != list(range(1, result.page_count + 1)))


def _inputs(source: Path | None, out_dir: Path, say: Any) -> tuple[Path, Path | None, CutOut | None, Path | None]:
    if source is not None:
        if not source.is_file():
            raise WorkerError("source_missing", f"{source} is not a file", next_step="give the path of a PDF or image")
        return source, None, None, None
    try:
        from sam2_mcp_worker.demo.cut_out import CutOut, box_px
        from sam2_mcp_worker.demo.filed import write_filed
        from sam2_mcp_worker.demo.fonts import find_fonts
        from sam2_mcp_worker.demo.leaflet import make_leaflet
        from sam2_mcp_worker.demo.leaflet_pictures import UMBRELLA_PT, banner_picture, cover_page
        from sam2_mcp_worker.demo.surfaces import POINTS_PER_INCH, PRINT_DPI
    except ImportError as error:
        raise WorkerError(
            "demo_extra_missing", f"the leaflet needs {error.name}", next_step="pip install 'sam2-mcp[worker,demo]'"
        ) from error
    leaflet = out_dir / "leaflet.pdf"
    truth = make_leaflet(leaflet)
    kinds = ", ".join(f"{page.page_number} {page.kind}" for page in truth.pages)
    say(f"leaflet made: {leaflet.name}, {leaflet.stat().st_size // 1024} KB, pages: {kinds}")
    banner, cover = out_dir / "banner.jpg", out_dir / "cover.jpg"
    banner.write_bytes(banner_picture(find_fonts()).jpeg())
    cover.write_bytes(cover_page(find_fonts()).jpeg())
    filed = out_dir / "filed.xlsx"
    say(f"workbook made: {filed.name}, to hold the figures against; {write_filed(filed)}")
    return leaflet, banner, CutOut(cover, box_px(UMBRELLA_PT, PRINT_DPI / POINTS_PER_INCH), "umbrella"), filed
