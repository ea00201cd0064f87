"""Rule packs: TOML files beside this module, or an operator's own, checked when they are loaded.

A pack names a field of work, the labels that are looked for by default, and the minimums that text in videos is held
against. It holds no code: what is judged by its numbers is judged by the pure functions of `checks`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sam2_mcp_worker.checks.labels import MAX_DEFINITION_CHARS, MAX_LABELS, Label, check_text, checked_labels
from sam2_mcp_worker.errors import WorkerError

FOLDER = Path(__file__).parent
# Our packs have 2 KB; a file of another kind that is named by mistake is not read into memory.
MAX_PACK_BYTES = 256 * 1024
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")


class _LabelEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    definition: str


class VideoRules(BaseModel):
    """Minimums for what videos show; None where there is none.

    `basis` says whose values they are: `house` is the operator's own, which `note` says in a sentence that goes along
    with every verdict. A height in pixels is of the upright frame, a share of the frame's height.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    min_text_height_px: float | None = Field(default=None, gt=0, le=1000)
    min_text_height_share: float | None = Field(default=None, gt=0, lt=1)
    min_exposure_s: float | None = Field(default=None, gt=0, le=3600)
    basis: Literal["house"]
    note: str = Field(min_length=1, max_length=300)


class _PackFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    title: str = Field(min_length=1, max_length=100)
    version: int = Field(ge=1)
    labels: list[_LabelEntry] = Field(min_length=1, max_length=MAX_LABELS)
    video: VideoRules | None = None


@dataclass(frozen=True, slots=True)
class RulePack:
    """`labels` are what is looked for when a call names none; `version` rises with every change of meaning.

    `video` is None in a pack that sets no minimums: then nothing is held against any.
    """

    name: str
    title: str
    version: int
    labels: tuple[Label, ...]
    video: VideoRules | None = None


def rule_pack_names() -> list[str]:
    """The packs that come along, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_rule_pack(name: str) -> RulePack:
    """The pack of this name, or from a path that ends in `.toml`.

    Raises:
        WorkerError: rule_pack_unknown, rule_pack_invalid; the text names the mistake.
    """
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if path.parent == FOLDER and not _NAME.match(path.stem):
        raise _unknown(name)
    try:
        data = path.read_bytes() if path.stat().st_size <= MAX_PACK_BYTES else None
    except (OSError, ValueError) as error:
        raise _unknown(name) from error
    if data is None:
        raise _invalid(name, f"it is larger than {MAX_PACK_BYTES // 1024} KiB")
    return parse_rule_pack(path.stem, data)


def parse_rule_pack(name: str, data: bytes) -> RulePack:
    """A pack from the bytes of its file.

    Raises:
        WorkerError: rule_pack_invalid.
    """
    try:
        content: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
        parsed = _PackFile.model_validate(content)
        definitions = [check_text(entry.definition, "a definition", MAX_DEFINITION_CHARS) for entry in parsed.labels]
        labels = checked_labels([entry.name for entry in parsed.labels], ())
    except ValidationError as error:
        first = error.errors()[0]
        raise _invalid(name, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except ValueError as error:  # not UTF-8, not TOML
        raise _invalid(name, str(error)) from error
    except WorkerError as error:
        raise _invalid(name, f"{error.what} ({error.rule})") from error
    if len(labels) != len(definitions):
        raise _invalid(name, "`default` is the word for the labels of the pack and cannot be one of them")
    described = zip(labels, definitions, strict=True)
    named = tuple(Label(label.name, text) for label, text in described)
    return RulePack(name, parsed.title, parsed.version, named, parsed.video)


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
        next_step="correct the file; docs/rule-packs.md shows its form",
    )
