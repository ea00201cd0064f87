"""The record of a diagnosis of the image road: what was found at each stage, without any bytes of the picture.

Owns its form, for people and for programs. Knows no worker and no picture.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from sam2_mcp_worker.errors import WorkerError

State = Literal["confirmed", "failed", "not verifiable from here"]
NOT_VERIFIABLE: State = "not verifiable from here"


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the road: `detail` is what was found, `next_step` what to do about it."""

    stage: str
    state: State
    detail: str
    next_step: str = ""


@dataclass(slots=True)
class Record:
    """Everything that is known about one picture's way."""

    picture: str
    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    mcp_revision: str = "not known"
    versions: dict[str, str] = field(default_factory=dict)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)

    async def check(self, stage: str, look: Callable[[], Awaitable[str]]) -> bool:
        """Go through one stage; its error, if any, is the finding."""
        try:
            self.stages.append(Stage(stage, "confirmed", await look()))
        except WorkerError as error:
            detail = "; ".join(part for part in (f"{error.code}: {error.what}", error.rule) if part)
            self.stages.append(Stage(stage, "failed", detail, error.next_step))
            return False
        return True

    def leave(self, stage: str, why: str, next_step: str = "") -> None:
        """A stage that cannot be looked at from here."""
        self.stages.append(Stage(stage, NOT_VERIFIABLE, why, next_step))

    @property
    def failed(self) -> bool:
        return any(stage.state == "failed" for stage in self.stages)

    @property
    def next_steps(self) -> list[str]:
        """What to do: about the first failure, since what follows may come of it; else what is left to look at."""
        failures = [stage.next_step for stage in self.stages if stage.state == "failed" and stage.next_step]
        if self.failed:
            return failures[:1]
        return [stage.next_step for stage in self.stages if stage.next_step]

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self) | {"next_steps": self.next_steps}

    def to_text(self) -> str:
        """For people."""
        lines = [
            f"picture       {self.picture}",
            f"time          {self.time}",
            f"MCP revision  {self.mcp_revision}",
            *(f"{name:12}  {version}" for name, version in self.versions.items()),
            *(f"block {number:<6}  {_block_line(block)}" for number, block in enumerate(self.blocks, 1)),
            "",
            *(f"{stage.state:24}  {stage.stage:22}  {stage.detail}" for stage in self.stages),
            "",
            *(f"read          {part}" for part in self.read),
            *(f"not checked   {part}" for part in self.not_checked),
            "",
            *(f"next: {step}" for step in self.next_steps),
        ]
        return "\n".join(lines) + "\n"


def _block_line(block: dict[str, Any]) -> str:
    facts = ", ".join(f"{name} {value}" for name, value in block.items() if name != "type")
    return f"{block['type']}{': ' + facts if facts else ''}"
