"""Runs the video tasks of the decoder children in the tests' own process."""

from __future__ import annotations

from typing import Any

from sam2_mcp_worker.media import video_child, video_encoder, video_sheet

TASKS = {**video_child.TASKS, **video_encoder.TASKS, **video_sheet.TASKS}


class InThisProcess:
    """A `TaskRunner` without children."""

    async def run(self, task: str, params: dict[str, Any], *, timeout_s: float, job: str) -> dict[str, Any]:
        """Run it at once."""
        return TASKS[task](params)
