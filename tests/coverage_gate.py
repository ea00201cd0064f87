"""Holds the coverage that the project promises: every branch of the bridge and of the pure cores, most of the rest.

Prints a table and ends with 1 when a promise is broken. Run by `make test` after the tests.
"""

import json
import sys
import tempfile
from pathlib import Path

from coverage import Coverage

# Logic that decides what an agent is told: no line and no branch of it may be untried.
COMPLETE = (
    "bridge/sam2_mcp_bridge/",
    "worker/sam2_mcp_worker/deadline.py",
    "worker/sam2_mcp_worker/fanout.py",
    "worker/sam2_mcp_worker/media/tiling.py",
    "worker/sam2_mcp_worker/media/seams.py",
    "worker/sam2_mcp_worker/media/region_seams.py",
    "worker/sam2_mcp_worker/media/reading_order.py",
    "worker/sam2_mcp_worker/media/frame_skip.py",
    "worker/sam2_mcp_worker/media/sound_cuts.py",
    "worker/sam2_mcp_worker/pipelines/delivery.py",
    "worker/sam2_mcp_worker/pipelines/region_delivery.py",
    "worker/sam2_mcp_worker/pipelines/redact_video_cover.py",
    "worker/sam2_mcp_worker/spending.py",
    "worker/sam2_mcp_worker/checks/",
    "worker/sam2_mcp_worker/cursors.py",
    "worker/sam2_mcp_worker/web/guard.py",
)
# These run as programs or in killable children, which leave no coverage data behind; tests start them for real.
IN_OTHER_PROCESSES = (
    "worker/sam2_mcp_worker/__main__.py",
    "worker/sam2_mcp_worker/cli/",
    "worker/sam2_mcp_worker/bench/",
    "worker/sam2_mcp_worker/demo/walk.py",
    "worker/sam2_mcp_worker/demo/processes.py",
    "worker/sam2_mcp_worker/execution/child.py",
    "worker/sam2_mcp_worker/execution/task_server.py",
    "worker/sam2_mcp_worker/media/decoder_child.py",
    "worker/sam2_mcp_worker/media/image_child.py",
    "worker/sam2_mcp_worker/media/page_ink.py",
    "worker/sam2_mcp_worker/media/pdf_child.py",
    "worker/sam2_mcp_worker/media/pdf_document.py",
    "worker/sam2_mcp_worker/media/pdf_objects.py",
    "worker/sam2_mcp_worker/media/pdf_render.py",
    "worker/sam2_mcp_worker/media/pdf_text.py",
    "worker/sam2_mcp_worker/media/pixel_writer.py",
    "worker/sam2_mcp_worker/media/redact_child.py",
    "worker/sam2_mcp_worker/media/scan_child.py",
)
OVERALL_PERCENT = 95.0


def main() -> int:
    """Check the combined coverage data of the run."""
    coverage = Coverage()
    coverage.load()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        coverage.json_report(outfile=str(report))
        data = json.loads(report.read_text(encoding="utf-8"))
    broken = tried = total = 0
    for name, about in sorted(data["files"].items()):
        if not name.replace("\\", "/").startswith(IN_OTHER_PROCESSES):
            summary = about["summary"]
            tried += summary["covered_lines"] + summary["covered_branches"]
            total += summary["num_statements"] + summary["num_branches"]
        if name.replace("\\", "/").startswith(COMPLETE):
            percent = about["summary"]["percent_covered"]
            missing = [*map(str, about["missing_lines"]), *(f"{a}->{b}" for a, b in about["missing_branches"])]
            print(f"{percent:6.1f} %  {name}  {'missing ' + ', '.join(missing) if missing else ''}")
            broken += bool(missing)
    overall = 100 * tried / total
    print(f"{overall:6.1f} %  of all that runs in the tests' own process, at least {OVERALL_PERCENT} % asked for")
    if broken or overall < OVERALL_PERCENT:
        print(f"coverage gate: {broken} modules that must be complete are not")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
