"""What the rest of the worker may ask of whatever runs tasks elsewhere: the local pool today, a cluster tomorrow."""

from __future__ import annotations

from typing import Any, Protocol


class TaskRunner(Protocol):
    """Runs named tasks somewhere that a crash, a hang or a memory bomb cannot reach us from."""

    async def run(
        self, task: str, params: dict[str, Any], *, timeout_s: float, job: str, finish: bool = False
    ) -> dict[str, Any]:
        """Run one task; parameters and result are JSON objects, pixels travel as files.

        With `finish`, a task that has begun goes on though its caller is cancelled.

        Raises:
            WorkerError: the task failed, crashed, or ran longer than `timeout_s` after it began.
        """
        ...
