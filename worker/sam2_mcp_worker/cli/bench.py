"""`bench NAME`: measure this machine."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.segmentation import sam2_packages_missing
from sam2_mcp_worker.settings import Settings


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser("bench", help="measure: SAM 2 beside plain ultralytics")
    parser.add_argument("name", choices=("sam",), help="what to measure")
    parser.add_argument("--rounds", type=int, default=5, help="times that each picture is done; medians are told")
    parser.add_argument("--frames", type=int, default=16, help="of the clip that is tracked; at least 9")
    parser.add_argument("--check", action="store_true", help="end with 1 when a figure falls short of its target")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Print a table; with --check 1 when something falls short."""
    missing = sam2_packages_missing()
    if missing:
        raise WorkerError(
            "sam_not_installed", f"bench sam needs {', '.join(missing)}", next_step="install sam2-mcp[worker,sam]"
        )
    # The bench is a program of its own: the server never imports torch.
    from sam2_mcp_worker.bench.sam import FRAMES_BEFORE_STEADY, measure

    report = measure(
        Settings(), rounds=max(1, arguments.rounds), frames=max(FRAMES_BEFORE_STEADY + 1, arguments.frames)
    )
    if arguments.json:
        facts = {**asdict(report), "short_of": report.short_of}
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        sys.stdout.write(_table(report))
    return int(arguments.check and bool(report.short_of))


def _table(report: Any) -> str:
    weights = "RANDOM weights: times are real, masks are not" if report.random_weights else "the configured weights"
    lines = [f"{report.model}, {weights}; {report.threads} threads, {report.gflop_per_s:.0f} GFLOP/s in float32", ""]
    lines += ["| case | ultralytics | ours | times faster | asked for |", "|---|---|---|---|---|"]
    for row in report.rows:
        asked = "" if row.target is None else f"{row.target:g}"
        lines.append(
            f"| {row.case} | {1000 * row.base_s:.0f} ms | {1000 * row.ours_s:.0f} ms | {row.ratio:.2f} | {asked} |"
        )
    lines += ["", "| encoder | time | times the floor | at most |", "|---|---|---|---|"]
    for case, seconds, ratio, most in report.floors:
        lines.append(f"| {case} | {1000 * seconds:.0f} ms | {ratio:.2f} | {'' if most is None else f'{most:g}'} |")
    if report.short_of:
        lines += ["", f"short of what is asked for: {', '.join(report.short_of)}"]
    return "\n".join(lines) + "\n"
