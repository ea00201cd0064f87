"""A task module with the real tracking tasks on random weights and small frames, for tests in real child processes."""

from __future__ import annotations

from typing import Any

from tests.fakes.sam2_tracking import small_tracker, telling_network

from sam2_mcp_worker.engines import tracking_tasks

IDENTITY = "sam2 random 0"
TASKS = tracking_tasks.TASKS


def setup(config: dict[str, Any]) -> None:
    """Without the weights file, the encoder's check and the sizes of `sam_child.setup`."""
    tracking_tasks.use(small_tracker(telling_network()), IDENTITY, int(config["track_memory_bytes"]))
