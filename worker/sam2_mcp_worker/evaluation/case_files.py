"""What an evaluation asks and expects: case files (TOML), checked whole before anything runs.

Owns the shape of a case file and its errors. Refuses to know how a case is run and scored.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sam2_mcp_worker.checks.verdict import LabelName
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.evaluation.profile import WorkflowProfile

# A case file is written by hand; larger ones are some other file.
MAX_CASE_FILE_BYTES = 1_000_000
PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


class Model(BaseModel):
    """Of a case file: what is not known is a mistake, not a remark."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SourceSpec(Model):
    """A file that cases are about: `path` (from the case file's folder) or `demo`, one that the demo can make."""

    path: str = ""
    demo: str = ""

    @model_validator(mode="after")
    def _one_of_them(self) -> SourceSpec:
        if bool(self.path) == bool(self.demo):
            raise ValueError("give either path or demo")
        return self


class ObserveRule(Model):
    """How findings are read out of a tool's result.

    `each` is the dotted path of a list in it. Each item whose fields are among the values of `where` gives a finding
    of `kind` about `about`; both may hold {field}s of the item, or {one|other}: the first that is there. With `words`
    it gives one finding for every word that its `text` holds (blanks do not count), about {word}.
    """

    each: str = Field(min_length=1)
    kind: str = Field(min_length=1)
    about: str = Field(min_length=1)
    where: dict[str, list[str | int | float | bool]] = {}
    words: list[str] = []
    text: str = "text"


class Call(Model):
    """One tool, with {source} names in its arguments; the cursor is followed to its end.

    Without `observe` the findings are read as `observing.RULES` says for the tool.
    """

    tool: str = Field(min_length=1)
    arguments: dict[str, Any] = {}
    observe: list[ObserveRule] = []


class ExpectedFinding(Model):
    """What a good review finds: `about` equals the finding's, or stands in it where `match` is contains.

    `optional` ones are neither missed nor false: a reviewer may see them either way.
    """

    kind: str = Field(min_length=1)
    about: str | list[str]
    match: Literal["equal", "contains"] = "equal"
    optional: bool = False

    def each(self) -> Iterator[tuple[str, str]]:
        """Kind and matter of every finding that is meant."""
        for about in [self.about] if isinstance(self.about, str) else self.about:
            yield self.kind, about


class Case(Model):
    """One thing to judge. `calls` are for tools, `input` for a workflow; `label` None: no label is expected."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")
    note: str = ""
    label: LabelName | None = None
    input: str = ""
    calls: list[Call] = []
    uses: list[str] = []  # tools that a workflow's event stream has to tell of
    findings: list[ExpectedFinding] = []

    @model_validator(mode="after")
    def _asks_something(self) -> Case:
        if not self.calls and not self.input.strip():
            raise ValueError("give calls (for tools) or input (for a workflow)")
        return self

    @property
    def source_names(self) -> set[str]:
        """Placeholders in arguments and input."""
        texts = json.dumps([call.arguments for call in self.calls]) + self.input
        return set(PLACEHOLDER.findall(texts)) - {"run_id"}


class ToolsAsked(Model):
    """What must be offered before a case may run, besides the tools that it calls; `count` exactly, where given."""

    required: list[str] = []
    count: int | None = Field(None, ge=1)


class CaseFile(Model):
    """A whole file; `folder` is where its paths begin."""

    title: str
    sources: dict[str, SourceSpec] = {}
    tools: ToolsAsked = ToolsAsked()
    workflow: WorkflowProfile = WorkflowProfile()
    cases: list[Case] = Field(min_length=1)
    folder: Path = Field(Path(), exclude=True)

    @model_validator(mode="after")
    def _names_agree(self) -> CaseFile:
        if odd := [name for name in self.sources if not re.fullmatch(r"[a-z][a-z0-9_]{0,19}", name)]:
            raise ValueError(f"source {odd[0]!r}: up to 20 small letters, digits and _")
        seen: set[str] = set()
        for case in self.cases:
            if case.id in seen:
                raise ValueError(f"two cases have the id {case.id}")
            seen.add(case.id)
            if missing := sorted(case.source_names - self.sources.keys()):
                raise ValueError(f"case {case.id}: {{{missing[0]}}} is not among the sources")
        return self

    def digest(self, case: Case, source_hashes: dict[str, str], target: str) -> str:
        """Of all that decides what a run means: kept runs of another case text, file or target do not count."""
        facts = {
            "target": target,
            "case": case.model_dump(mode="json"),
            "tools": self.tools.model_dump(mode="json"),
            "workflow": self.workflow.model_dump(mode="json"),
            "sources": {name: source_hashes[name] for name in sorted(case.source_names)},
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True).encode("utf-8")).hexdigest()[:16]


def load_case_files(paths: Sequence[Path]) -> list[CaseFile]:
    """All files, with ids that are different over all of them.

    Raises:
        WorkerError: `case_file_unreadable`, `case_file_invalid` (which key and why) or `case_id_twice`.
    """
    files = [_load(path) for path in paths]
    seen: dict[str, str] = {}
    for file in files:
        for case in file.cases:
            if case.id in seen:
                raise WorkerError(
                    "case_id_twice", f"{case.id} is in {seen[case.id]!r} and in {file.title!r}", next_step="rename one"
                )
            seen[case.id] = file.title
    return files


def _load(path: Path) -> CaseFile:
    if path.exists() and not path.is_file():  # a pipe or a device may have no end
        raise WorkerError("case_file_unreadable", f"{path}: no plain file", next_step="give the path of a case file")
    try:
        with path.open("rb") as opened:
            data = opened.read(MAX_CASE_FILE_BYTES + 1)
    except OSError as error:
        raise WorkerError(
            "case_file_unreadable", f"{path}: {error.strerror}", next_step="give the path of a case file"
        ) from error
    if len(data) > MAX_CASE_FILE_BYTES:
        raise _invalid(path, f"more than {MAX_CASE_FILE_BYTES} bytes")
    try:
        return CaseFile.model_validate({**tomllib.loads(data.decode("utf-8")), "folder": path.resolve().parent})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(path, str(error)) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise _invalid(path, f"{'.'.join(map(str, first['loc'])) or 'file'}: {first['msg']}") from error


def _invalid(path: Path, why: str) -> WorkerError:
    return WorkerError("case_file_invalid", f"{path.name}: {why}", next_step="see docs/evaluation.md for the format")
