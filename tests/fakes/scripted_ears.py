"""A Transcriber that says what a test wants, in this process: for what is done with several engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.speech_ports import AudioPiece, Hearing
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.spending import Usage, spend


@dataclass
class ScriptedEars:
    """Answers with `answers` in turn, the last one for ever; an error is raised. `asked` counts."""

    name: str
    answers: Sequence[Hearing | WorkerError]
    quality: Literal["provider", "low"] = "provider"
    costs_money: bool = True
    where: str = "ears.example"
    pieces_in_flight: int = 2
    trouble: WorkerError | None = None
    asked: int = 0
    languages: list[str | None] = field(default_factory=list)

    @property
    def identity(self) -> str:
        return f"scripted {self.name}"

    def status(self) -> dict[str, Any]:
        return {}

    async def start(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def transcribe(self, piece: AudioPiece, *, language: str | None, job: str, deadline: Deadline) -> Hearing:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        self.languages.append(language)
        if self.costs_money:
            spend(Usage(requests=1, usd=0.001))
        if isinstance(answer, WorkerError):
            raise answer
        return answer
