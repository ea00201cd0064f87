"""The task module of the scan child: reads long videos and sounds from beginning to end, with open files kept between
tasks, so that going on costs nothing. One child, so that a task always finds the file that the one before it opened.
"""

from __future__ import annotations

from typing import Any

from sam2_mcp_worker.media import audio_scan_child, video_scan_child


def setup(config: dict[str, Any]) -> None:
    """Nothing to load or configure: limits come with each task."""


TASKS = {**video_scan_child.TASKS, **audio_scan_child.TASKS}
