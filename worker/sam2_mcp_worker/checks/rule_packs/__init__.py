"""Rule packs: TOML files beside this module, or an operator's own, checked when they are loaded.

A pack names a field of work, the labels that are looked for by default, the wordings that must and must not stand in a
document, the minimums that are held against it, and the table from findings to a label. It holds no code and no
patterns: what is judged by it is judged by the pure functions of `checks`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sam2_mcp_worker.checks.labels import MAX_DEFINITION_CHARS, Label, check_text, checked_labels
from sam2_mcp_worker.checks.rule_packs.schema import (
    ForbiddenRule,
    Law,
    PackFile,
    PhraseRule,
    Room,
    SealFormat,
    SealRules,
    StaleRule,
    VerdictRow,
    VerdictTable,
)
from sam2_mcp_worker.checks.rule_packs.sections import (
    ContrastRules,
    FileRules,
    Sourced,
    SpeechRules,
    TextRules,
    VideoRules,
)
from sam2_mcp_worker.checks.rule_packs.whole import mistakes
from sam2_mcp_worker.errors import WorkerError

__all__ = [
    "ContrastRules",
    "FileRules",
    "ForbiddenRule",
    "Law",
    "PhraseRule",
    "Room",
    "RulePack",
    "SealFormat",
    "SealRules",
    "Sourced",
    "SpeechRules",
    "StaleRule",
    "TextRules",
    "VerdictRow",
    "VerdictTable",
    "VideoRules",
    "load_rule_pack",
    "pack_bytes",
    "parse_rule_pack",
    "read_pack",
    "rule_pack_names",
]

FOLDER = Path(__file__).parent
# Our packs have 2 to 20 KB; a file of another kind that is named by mistake is not read into memory.
MAX_PACK_BYTES = 256 * 1024
SECTIONS = ("seal", "text", "contrast", "files", "speech", "video")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")


@dataclass(frozen=True, slots=True)
class RulePack:
    """`labels` are what is looked for when a call names none; `version` rises with every change of meaning.

    A section is None in a pack that does not have it: then nothing is held against it.
    """

    name: str
    title: str
    version: int
    labels: tuple[Label, ...]
    laws: tuple[Law, ...] = ()
    phrases: tuple[PhraseRule, ...] = ()
    stale: tuple[StaleRule, ...] = ()
    forbidden: tuple[ForbiddenRule, ...] = ()
    seal: SealRules | None = None
    text: TextRules | None = None
    contrast: ContrastRules | None = None
    files: FileRules | None = None
    speech: SpeechRules | None = None
    video: VideoRules | None = None
    verdict: VerdictTable = field(default_factory=VerdictTable)

    def on(self, day: date) -> RulePack:
        """The pack with only those rules that hold on that day; what was right until then is not stale yet."""
        return replace(
            self,
            phrases=tuple(rule for rule in self.phrases if rule.holds_on(day)),
            stale=tuple(rule for rule in self.stale if rule.holds_on(day) and rule.held_until < day),
            forbidden=tuple(rule for rule in self.forbidden if rule.holds_on(day)),
        )

    def rule(self, name: str) -> Sourced | None:
        """The rule of this id, or the section that a finding's rule such as `seal.number` belongs to."""
        for rule in (*self.phrases, *self.stale, *self.forbidden):
            if rule.id == name:
                return rule
        section, _, field = name.partition(".")
        if section == "seal" and field and self.seal is not None:
            return self.seal.format
        found = getattr(self, section, None) if section in SECTIONS else None
        return found if isinstance(found, Sourced) else None

    def source_of(self, rule: Sourced) -> str:
        """Where a rule comes from, as one line: the law with its version and article, or its note."""
        law = next((law for law in self.laws if law.id == rule.law), None)
        if law is None:
            return rule.note
        return f"{law.title} {rule.article} (version in force since {law.in_force.isoformat()}, {law.serial})"


def rule_pack_names() -> list[str]:
    """The packs that come along, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_rule_pack(name: str) -> RulePack:
    """The pack of this name, or from a path that ends in `.toml`.

    Raises:
        WorkerError: rule_pack_unknown, rule_pack_invalid; the text names the mistake.
    """
    stem, data = pack_bytes(name)
    return parse_rule_pack(stem, data)


def pack_bytes(name: str) -> tuple[str, bytes]:
    """The plain name of a pack, and its file.

    Raises:
        WorkerError: rule_pack_unknown, rule_pack_invalid where it is too large.
    """
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if path.parent == FOLDER and not _NAME.match(path.stem):
        raise _unknown(name)
    try:
        if not path.is_file():  # a pipe or a device may have no end
            raise _unknown(name)
        with path.open("rb") as file:
            data = file.read(MAX_PACK_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _unknown(name) from error
    if len(data) > MAX_PACK_BYTES:
        raise _invalid(name, f"it is larger than {MAX_PACK_BYTES // 1024} KiB")
    return path.stem, data


def parse_rule_pack(name: str, data: bytes) -> RulePack:
    """A pack from the bytes of its file.

    Raises:
        WorkerError: rule_pack_invalid.
    """
    parsed, wrong = read_pack(data)
    if parsed is None or wrong:
        raise _invalid(name, wrong[0])
    sections = {key: getattr(parsed, key) for key in PackFile.model_fields if key != "labels"}
    return RulePack(name=name, labels=tuple(_checked(parsed)), **sections)


def read_pack(data: bytes) -> tuple[PackFile | None, tuple[str, ...]]:
    """What stands in the bytes of a pack's file, and all that is wrong with it, each with its place."""
    try:
        content: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
        parsed = PackFile.model_validate(content)
    except ValidationError as error:
        return None, tuple(f"{_place(item['loc'])}: {item['msg']}" for item in error.errors())
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, nested without end
        return None, (str(error)[:200],)
    try:
        _checked(parsed)
    except WorkerError as error:
        return parsed, (f"labels: {error.what} ({error.rule})", *mistakes(parsed))
    return parsed, tuple(mistakes(parsed))


def _place(parts: Sequence[int | str]) -> str:
    """ "phrases.2.text", counted from 1: people count entries so."""
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in parts)


def _checked(parsed: PackFile) -> list[Label]:
    """The labels of a pack.

    Raises:
        WorkerError: label_invalid and the like, rule_pack_invalid.
    """
    definitions = [check_text(entry.definition, "a definition", MAX_DEFINITION_CHARS) for entry in parsed.labels]
    labels = checked_labels([entry.name for entry in parsed.labels], ())
    if len(labels) != len(definitions):
        raise WorkerError(
            "rule_pack_invalid",
            "`default` is the word for the labels of the pack and cannot be one of them",
            rule="each label has a name of its own",
        )
    return [Label(label.name, text) for label, text in zip(labels, definitions, strict=True)]


def _unknown(name: str) -> WorkerError:
    return WorkerError(
        "rule_pack_unknown",
        f"there is no rule pack {name[:80]!r}",
        rule=f"packs that come along: {', '.join(rule_pack_names())}; or a path to a file that ends in .toml",
        next_step="set SAM2_MCP_RULE_PACK to one of them",
    )


def _invalid(name: str, why: str) -> WorkerError:
    return WorkerError(
        "rule_pack_invalid",
        f"the rule pack {name[:80]!r} cannot be used: {why[:200]}",
        next_step="correct the file; docs/rule-packs.md shows its form, `sam2-mcp-worker rules lint` all its mistakes",
    )
