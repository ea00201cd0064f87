"""What stands in the file of a rule pack, entry by entry; a mistake in one is told with its place.

Owns the fields and what makes one entry wrong by itself. Refuses to know how entries go together (`lint`) and how they
are judged. Dates are days, both ends belong to a validity.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from sam2_mcp_worker.checks.findings import Basis, FindingKind
from sam2_mcp_worker.checks.labels import MAX_LABELS
from sam2_mcp_worker.checks.rule_packs.sections import (
    ContrastRules,
    FileRules,
    ShortText,
    Sourced,
    SpeechRules,
    Strict,
    TextRules,
    VideoRules,
)

# As in checks/phrases.py; written here again because that module loads rapidfuzz.
MAX_TEXT_CHARS = 300
# One check holds all of them against a document; more belong into packs of their own.
MAX_RULES = 60
MAX_WORDS = 40

RuleId = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
Wording = Annotated[str, Field(min_length=2, max_length=MAX_TEXT_CHARS)]
Words = Annotated[tuple[ShortText, ...], Field(strict=False, max_length=MAX_WORDS)]


class LabelEntry(Strict):
    """A label that is looked for, and what it means."""

    name: str
    definition: str


class Law(Strict):
    """A law, decree or notice: `serial` is that of the version that was looked at, `in_force` its first day."""

    id: RuleId
    title: str = Field(min_length=1, max_length=100)
    serial: str = Field(min_length=1, max_length=60)
    in_force: date


class Dated(Sourced):
    """A rule with an id that holds from `valid_from` to `valid_until`; None is open."""

    id: RuleId
    valid_from: date | None = None
    valid_until: date | None = None

    @model_validator(mode="after")
    def _holds_some_day(self) -> Self:
        if self.valid_from and self.valid_until and self.valid_from > self.valid_until:
            raise ValueError(f"{self.id}: valid_from is after valid_until, so it never holds")
        return self

    def holds_on(self, day: date) -> bool:
        """Whether it holds on that day."""
        return (self.valid_from or day) <= day <= (self.valid_until or day)


class PhraseRule(Dated):
    """A mandatory phrase: one of `texts` (wordings that say the same) must be there.

    `need` `when_it_applies`: only if what the sentence `when` says is so; `signs` are words that tell that it is.
    `channel`: shown, spoken, or any of them.
    """

    texts: Annotated[tuple[Wording, ...], Field(strict=False, min_length=1, max_length=8)]
    need: Literal["always", "when_it_applies"]
    when: str = Field(default="", max_length=200)
    signs: Words = ()
    channel: Literal["shown", "spoken", "any"] = "shown"

    @model_validator(mode="after")
    def _says_when(self) -> Self:
        if (self.need == "when_it_applies") != bool(self.when):
            raise ValueError(f"{self.id}: `when` belongs to need = when_it_applies, and is needed there")
        if self.signs and self.need == "always":
            raise ValueError(f"{self.id}: what is needed always has no `signs`")
        return self


class StaleRule(Dated):
    """Wordings that were right until `held_until`; on a later day they are wrong. `instead` is the id of the phrase."""

    texts: Annotated[tuple[Wording, ...], Field(strict=False, min_length=1, max_length=8)]
    held_until: date
    instead: RuleId


class ForbiddenRule(Dated):
    """Words that must not stand there. `{amount}` in one is any sum of money, `{number}` any number; spaces are free.

    `unless` are words near by in whose company it means something else. Where one of `sure_near` stands near by, or
    `sure` is set, it is not met; else it is for a person to look at.
    """

    words: Annotated[tuple[ShortText, ...], Field(strict=False, min_length=1, max_length=MAX_WORDS)]
    unless: Words = ()
    sure_near: Words = ()
    sure: bool = False


class SealFormat(Sourced):
    """What the mark of the review tells beside its name. With `validity` its last day must be told.

    `max_valid_days`: no longer than so many days from the day of the review, where that is told.
    """

    number: bool = True
    validity: bool = True
    max_valid_days: int | None = Field(default=None, ge=1, le=3660)


class SealRules(Sourced):
    """The mark of the review; `names` are what it may be called."""

    names: Annotated[tuple[ShortText, ...], Field(strict=False, min_length=1, max_length=20)]
    need: Literal["always", "optional"] = "always"
    format: SealFormat | None = None


class Room(Strict):
    """Named room for a reviewer's discretion: `what` to weigh, and the mildest label that `may` come of it."""

    id: RuleId
    what: str = Field(min_length=1, max_length=300)
    may: Literal["approve", "conditional"]


class VerdictRow(Strict):
    """`at_least` findings of this kind, verdict and basis give this label; `room` is the id of a discretion."""

    kind: Literal[FindingKind, "any"]
    verdict: Literal["not_met", "review", "cannot_tell"]
    basis: Literal[Basis, "any"] = "any"
    at_least: int = Field(default=1, ge=1, le=1000)
    label: Literal["conditional", "reject"]
    room: str = Field(default="", max_length=40)

    @model_validator(mode="after")
    def _counts_within_a_tool(self) -> Self:
        if self.kind == "any" and self.at_least > 1:
            raise ValueError("a row for any kind counts from 1: kinds belong to several tools, which count apart")
        return self


class VerdictTable(Strict):
    """From kinds and numbers of findings to a label. What no row speaks of has a floor in `checks.verdict`."""

    rows: Annotated[tuple[VerdictRow, ...], Field(strict=False, max_length=100)] = ()
    rooms: Annotated[tuple[Room, ...], Field(strict=False, max_length=40)] = ()


class PackFile(Strict):
    """The whole file."""

    title: str = Field(min_length=1, max_length=100)
    version: int = Field(ge=1)
    labels: Annotated[tuple[LabelEntry, ...], Field(strict=False, min_length=1, max_length=MAX_LABELS)]
    laws: Annotated[tuple[Law, ...], Field(strict=False, max_length=40)] = ()
    phrases: Annotated[tuple[PhraseRule, ...], Field(strict=False, max_length=MAX_RULES)] = ()
    stale: Annotated[tuple[StaleRule, ...], Field(strict=False, max_length=MAX_RULES)] = ()
    forbidden: Annotated[tuple[ForbiddenRule, ...], Field(strict=False, max_length=MAX_RULES)] = ()
    seal: SealRules | None = None
    text: TextRules | None = None
    contrast: ContrastRules | None = None
    files: FileRules | None = None
    speech: SpeechRules | None = None
    video: VideoRules | None = None
    verdict: VerdictTable = VerdictTable()
