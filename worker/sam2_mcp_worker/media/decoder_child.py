"""The task module of the decoder children: everything that reads files from outside, in one pool."""

from __future__ import annotations

from typing import Any

from sam2_mcp_worker.media import (
    exposure_pictures,
    figure_child,
    image_child,
    mask_files,
    mask_overlay,
    mask_runs,
    overlay,
    page_edges,
    page_ink,
    pdf_child,
    picture_checks,
    picture_facts,
    seen_lines,
    table_child,
    text_contrast,
    tile_pictures,
    video_child,
    video_encoder,
    video_join,
    video_sheet,
)


def setup(config: dict[str, Any]) -> None:
    """Load the decoders. There is nothing to configure: limits come with each task."""
    image_child.prepare()


TASKS = {
    **pdf_child.TASKS,
    **image_child.TASKS,
    **overlay.TASKS,
    **mask_files.TASKS,
    **mask_overlay.TASKS,
    **mask_runs.TASKS,
    **page_edges.TASKS,
    **page_ink.TASKS,
    **seen_lines.TASKS,
    **table_child.TASKS,
    **text_contrast.TASKS,
    **tile_pictures.TASKS,
    **picture_checks.TASKS,
    **picture_facts.TASKS,
    **video_child.TASKS,
    **video_encoder.TASKS,
    **video_join.TASKS,
    **video_sheet.TASKS,
    **exposure_pictures.TASKS,
    **figure_child.TASKS,
}
