"""What one run came to, why a run does not count, and the file in which finished runs are kept.

A refused run is neither right nor wrong: its answer cannot be told to be this case's answer. It is counted, shown and
never scored, so that a broken harness does not look like a careful reviewer.
"""

from __future__ import annotations

import dataclasses
import json
import re
import secrets
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from sam2_mcp_worker.errors import WorkerError

Refusal = Literal[
    "target_unreachable",
    "tools_missing",
    "tool_count",
    "conversation_not_own",
    "wrong_input",
    "input_not_confirmed",
    "streams_mixed",
    "stream_cut",
    "verdict_too_short",
    "verdict_without_label",
    "verdict_ambiguous",
    "tools_unused",
    "timeout",
    "session_lost",
    "answer_unreadable",
    "target_error",
]


class RefusedRun(Exception):
    """This run says nothing about the case. `text` is what was answered, where something was."""

    def __init__(self, code: Refusal, detail: str) -> None:
        self.code: Refusal = code
        self.detail = detail
        self.text = ""
        super().__init__(f"{code}: {detail}")


@dataclass(frozen=True, slots=True, order=True)
class Observed:
    """A finding as it was reported."""

    kind: str
    about: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run answered.

    `findings` is None where the answer lists none in a form that can be read: their absence proves nothing then.
    `undone` says what was not read or judged, `notes` what was not checked about the run; `text` is the answer itself.
    """

    label: str | None
    findings: tuple[Observed, ...] | None
    undone: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    calls: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One attempt at one repeat of a case. `code` is empty for a run that counts."""

    case: str
    digest: str
    repeat: int
    run_id: str
    started_at: str
    elapsed_s: float
    code: str = ""
    detail: str = ""
    label: str | None = None
    findings: tuple[Observed, ...] | None = None
    undone: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    calls: int = 0

    @property
    def counts(self) -> bool:
        """Whether it may be scored."""
        return not self.code


def new_run_id(case_id: str, repeat: int) -> str:
    """An id that no other run ever had: of the case, the repeat, and 64 random bits."""
    return f"{case_id[:40]}-{repeat}-{secrets.token_hex(8)}"


def plain(text: str) -> str:
    """Text as findings are compared: composed, without case, without blanks."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text)).casefold()


class RunStore:
    """Finished runs, one JSON line each, appended as they end; a line that a kill cut off does not count."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "runs.jsonl"
        self._answers = folder / "answers"
        try:
            self._answers.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab+") as file:
                if file.tell() and not _ends_a_line(file):
                    file.write(b"\n")  # what a kill cut off stays a line of its own
        except OSError as error:
            raise WorkerError(
                "folder_unwritable", f"{folder}: {error.strerror}", next_step="name another --out"
            ) from error
        self.kept, self.damaged = _read(self._path.read_text(encoding="utf-8", errors="replace"))

    def finished(self, case: str, digest: str, repeat: int) -> RunRecord | None:
        """The last attempt at this repeat of this very case, if there was one."""
        same = [run for run in self.kept if (run.case, run.digest, run.repeat) == (case, digest, repeat)]
        return same[-1] if same else None

    def keep(self, record: RunRecord, text: str) -> None:
        """Write it down; `text` is the whole answer, for people who want to see why."""
        if text:
            (self._answers / f"{record.run_id}.txt").write_text(text, encoding="utf-8", errors="replace")
        with self._path.open("ab") as file:
            file.write(json.dumps(dataclasses.asdict(record)).encode("ascii") + b"\n")
        self.kept.append(record)


def _ends_a_line(file: BinaryIO) -> bool:
    file.seek(-1, 2)
    return file.read(1) == b"\n"


def _read(text: str) -> tuple[list[RunRecord], int]:
    records, damaged = [], 0
    for line in filter(str.strip, text.split("\n")):
        try:
            records.append(_record(json.loads(line)))
        except (ValueError, TypeError, KeyError, RecursionError):
            damaged += 1
    return records, damaged


def _record(facts: dict[str, Any]) -> RunRecord:
    findings = facts["findings"]
    found = None if findings is None else tuple(Observed(**item) for item in findings)
    return RunRecord(**facts | {"findings": found, "undone": tuple(facts["undone"]), "notes": tuple(facts["notes"])})


def unique(findings: Iterable[Observed]) -> tuple[Observed, ...]:
    """Each finding once, in order: tools that tell the same place twice found it once."""
    seen: dict[tuple[str, str], Observed] = {}
    for finding in findings:
        seen.setdefault((finding.kind, plain(finding.about)), finding)
    return tuple(seen.values())


def missing_tools(needed: Sequence[str], offered: Sequence[str], count: int | None) -> None:
    """Hold the list of tools against what is needed, before anything runs.

    Raises:
        RefusedRun: `tools_missing` (an empty list among them: an agent without tools judges by impression) or
            `tool_count`.
    """
    if absent := sorted(set(needed) - set(offered)):
        raise RefusedRun("tools_missing", f"{', '.join(absent)} not among the {len(offered)} tools offered")
    if count is not None and len(offered) != count:
        raise RefusedRun("tool_count", f"{len(offered)} tools offered, {count} expected")
