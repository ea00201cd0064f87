"""The comparison of figures as a task of the decoder children."""

from __future__ import annotations

from typing import Any


def compare_figures(params: dict[str, Any]) -> dict[str, Any]:
    """Task: `comparison` (JSON of a `Comparison`) -> `findings` (JSON of findings), mismatches first."""
    # Not above: the patterns of all forms of numbers take 0.1 s to compile, and few children ever compare anything.
    from sam2_mcp_worker.media.figure_comparison import compared, comparison_from, findings_json

    return {"findings": findings_json(compared(comparison_from(params["comparison"])))}


TASKS = {"compare_figures": compare_figures}
