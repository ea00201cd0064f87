"""What a redaction has to tell: what was covered, what was verified, what was not. Plain JSON, kept with the result."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Literal

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.redact_phrases import Match, ReadLine, closest_reading, normalised
from sam2_mcp_worker.pipelines.redact_request import Method
from sam2_mcp_worker.services import Services

Status = Literal["done", "incomplete", "nothing_covered"]
REVERSIBLE = (
    "pixelated and blurred areas can be reversed, letters above all: they are for looks. Use method 'fill' for secrets"
)

UNREADABLE = (
    "whether a phrase also stands in print that OCR does not read or misreads: turned or upside down, handwritten, "
    "very faint; phrases of fewer than 5 letters are found only where every letter is read right"
)


@dataclass(slots=True)
class Findings:
    """The result of a redaction while it grows; `to_json` when it is complete."""

    phrases: Sequence[str] = ()
    covered: list[dict[str, Any]] = field(default_factory=list)
    found: set[int] = field(default_factory=set)
    not_found: list[dict[str, Any]] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    verified: list[str] = field(default_factory=list)
    not_verified: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    parts_failed: bool = False
    """Whether something could not be read that may be readable the next time."""

    def cover_region(self, number: int, **about: Any) -> None:
        """A region of the call is covered."""
        self.covered.append({"region": number, **about})

    def cover_match(self, match: Match, **about: Any) -> None:
        """A place of a phrase is covered; what a look-alike was read as is told."""
        self.found.add(match.phrase)
        self.not_found = [entry for entry in self.not_found if entry["phrase"] != self.phrases[match.phrase]]
        entry = {"phrase": self.phrases[match.phrase], "match": match.kind, **about}
        if match.kind == "near":
            entry["read_as"] = match.read_as
        self.covered.append(entry)

    def miss(self, lines: Sequence[ReadLine], places: Sequence[dict[str, Any]]) -> None:
        """Name the phrases that were found nowhere, with the least unlike line; `places[i]` says where line i is."""
        for index, phrase in enumerate(self.phrases):
            if index in self.found:
                continue
            entry: dict[str, Any] = {"phrase": phrase}
            closest = closest_reading(phrase, lines)
            if closest is not None:
                entry["closest"] = {
                    "text": closest.text,
                    "similarity": closest.similarity,
                    **places[closest.line],
                }
            self.not_found.append(entry)

    def _note_limits(self) -> None:
        """Say what covering given places does not look for, and what looking for phrases cannot see."""
        if self.phrases and self.covered:
            self.not_verified.append(UNREADABLE)
        if not self.phrases:
            self.not_verified.append(
                "whether what was covered also stands elsewhere: only the given places were covered"
            )

    @property
    def status(self) -> Status:
        """`incomplete` when a phrase was not found or may stand where nobody could read."""
        if not self.covered:
            return "nothing_covered"
        return "incomplete" if self.not_found or self.incomplete else "done"

    def to_json(self, method: Method, artifact: Artifact | None) -> dict[str, Any]:
        """The whole result."""
        self._note_limits()
        return {
            "status": self.status,
            "handle": artifact.handle if artifact else None,
            "method": method,
            "method_note": REVERSIBLE if method != "fill" and artifact else None,
            "covered": self.covered,
            "not_found": self.not_found,
            "incomplete_because": self.incomplete,
            "verified": self.verified,
            "not_verified": self.not_verified,
            "notes": self.notes,
            "parts_failed": self.parts_failed,
        }


def unverified(what: str, private: str = "") -> WorkerError:
    """The error for an output that did not pass: it is thrown away."""
    return WorkerError(
        "redaction_unverified",
        f"the redacted file did not pass its check and was thrown away: {what}",
        rule="nothing is returned that was not verified",
        next_step="give larger boxes, or another region",
        private=private,
    )


def output_name(source_name: str, suffix: str, phrases: Sequence[str]) -> str:
    """The name of the redacted file; a name that says what was redacted is not kept."""
    stem = PurePath(source_name).stem
    told = any(normalised(phrase) in normalised(stem) for phrase in phrases)
    return f"redacted{suffix}" if told else f"{stem}-redacted{suffix}"


async def keep(services: Services, path: Path, *, name: str, mime_type: str) -> Artifact:
    """Move a verified output into the artifacts; a call that is cancelled meanwhile leaves none behind."""
    handle = services.artifacts.new_handle()
    moving = asyncio.ensure_future(
        asyncio.to_thread(services.artifacts.adopt, path, name=name, mime_type=mime_type, handle=handle)
    )
    try:
        return await asyncio.shield(moving)
    except asyncio.CancelledError:
        await asyncio.wait({moving})
        await asyncio.to_thread(services.artifacts.discard, handle)
        raise
