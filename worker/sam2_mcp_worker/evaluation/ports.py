"""What a runner needs of whoever carries out tools, so that worker and station are driven alike."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

# The wall of the field: the loader and the station both give up at 30.0 s (reference/station.md).
CALL_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The first text block of a tool's answer, as a station hands it on."""

    text: str
    is_error: bool


class ToolSession(Protocol):
    """One session, used by one run and never again."""

    async def tools(self) -> list[str]:
        """Names of the tools on offer."""
        ...

    async def call(self, tool: str, arguments: dict[str, Any]) -> ToolAnswer:
        """One call.

        Raises:
            RefusedRun: `timeout` after `CALL_LIMIT_S`, `session_lost`, `answer_unreadable`.
        """
        ...


class ToolTarget(Protocol):
    """A worker, directly or behind a station."""

    async def upload(self, path: Path, name: str) -> str:
        """Hand a file over under a name; its handle."""
        ...

    def session(self, run_id: str) -> AbstractAsyncContextManager[ToolSession]:
        """A new session for one run."""
        ...
