"""One redaction as its steps see it: what is asked for, of which file, and where to work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sam2_mcp_worker.pipelines.redact_request import RedactRequest
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile


@dataclass(frozen=True, slots=True)
class RedactionTask:
    """`job` is the key of the fair order; `workdir` is gone after the task; `tell` says what is being done."""

    services: Services
    stored: StoredFile
    request: RedactRequest
    job: str
    workdir: Path
    tell: Callable[[str], None]

    @property
    def timeout_s(self) -> float:
        """The hard limit of one native step."""
        return self.services.settings.step_timeout_s
