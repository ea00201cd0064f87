"""From kinds and numbers of findings to a label, by the table of a rule pack: the same findings give the same label.

Owns what no table can change: without a finding there is no label; nothing is approved while something is undone, could
not be told, is for a person to look at, or is wrong. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.rule_packs.schema import Room, VerdictRow, VerdictTable

LabelName = Literal["approve", "none", "conditional", "reject"]
"""From the mildest to the most severe; `none` is no label: something is not known yet."""

SEVERITY: tuple[LabelName, ...] = get_args(LabelName)

# Rules that are named in a reason; the findings themselves name all.
MAX_NAMED = 5

_FLOORS: tuple[tuple[str, LabelName, str], ...] = (
    ("not_met", "conditional", "not met"),
    ("review", "conditional", "for a person to look at"),
    ("cannot_tell", "none", "not known"),
)


@dataclass(frozen=True, slots=True)
class VerdictLabel:
    """`because` says in sentences what the label follows from.

    `discretion` is the room that a reviewer has: none where it would not change the label, because one of the reasons
    leaves none. A room gives nothing milder than what the other findings allow, and no approval of what is not known.
    """

    label: LabelName
    because: tuple[str, ...]
    discretion: tuple[Room, ...] = ()

    @property
    def said(self) -> tuple[str, ...]:
        """The reasons and a reviewer's room, for people."""
        rooms = (f"A reviewer may give {room.may} instead ({room.id}): {room.what}" for room in self.discretion)
        return (*self.because, *rooms)


@dataclass(frozen=True, slots=True)
class _Reached:
    label: LabelName
    because: str
    room: str = ""
    findings: tuple[Finding, ...] = ()


def label_of(findings: Iterable[Finding], complete: bool, table: VerdictTable) -> VerdictLabel:
    """The label that follows. `complete` is False while pages failed, were not reached, or a cursor is open.

    Findings that are met count as having been judged: without any finding the label is `none`.
    """
    held = list(findings)
    if not held:
        return VerdictLabel("none", ("nothing was judged",))
    reached = _rows(held, table)
    spoken = {id(finding) for row in reached for finding in row.findings}
    reached += _floors([finding for finding in held if id(finding) not in spoken])
    if not complete:
        reached.append(_Reached("none", "not everything was gone through"))
    label = _most_severe(one.label for one in reached)
    if label == "approve":
        return VerdictLabel("approve", (f"all that was judged is met ({len(held)})",))
    decisive = [one for one in reached if one.label == label]
    because = tuple(dict.fromkeys(one.because for one in decisive))
    rooms = {one.room for one in decisive}
    rest = _most_severe(one.label for one in reached if one.label != label)
    given = () if "" in rooms else tuple(room for room in table.rooms if room.id in rooms)
    return VerdictLabel(label, because, _bounded(given, rest, label))


def _bounded(rooms: Iterable[Room], rest: LabelName, label: LabelName) -> tuple[Room, ...]:
    """The rooms beside reasons that give `rest`; those that change nothing then are none."""
    least: Literal["approve", "conditional"] = "approve" if rest == "approve" else "conditional"
    bounded = (room if SEVERITY.index(room.may) >= SEVERITY.index(least) else _giving(room, least) for room in rooms)
    return tuple(room for room in bounded if room.may != label)


def _giving(room: Room, may: Literal["approve", "conditional"]) -> Room:
    return room.model_copy(update={"may": may})


def _most_severe(names: Iterable[LabelName]) -> LabelName:
    return max(names, key=SEVERITY.index, default="approve")


def _rows(findings: Collection[Finding], table: VerdictTable) -> list[_Reached]:
    """What the rows give that are reached, in the order of the table."""
    reached: list[_Reached] = []
    for row in table.rows:
        matching = [finding for finding in findings if _matches(row, finding)]
        if len(matching) >= row.at_least:
            because = _said(matching, f"{row.kind} {row.verdict}")
            reached.append(_Reached(row.label, because, row.room, tuple(matching)))
    return reached


def _floors(findings: Collection[Finding]) -> list[_Reached]:
    """What findings give that no row speaks of."""
    reached: list[_Reached] = []
    for verdict, label, words in _FLOORS:
        matching = [finding for finding in findings if finding.verdict == verdict]
        if matching:
            reached.append(_Reached(label, _said(matching, words)))
    return reached


def _matches(row: VerdictRow, finding: Finding) -> bool:
    return finding.verdict == row.verdict and row.kind in ("any", finding.kind) and row.basis in ("any", finding.basis)


def _said(findings: Collection[Finding], words: str) -> str:
    rules = sorted({finding.rule for finding in findings})
    more = f" and {len(rules) - MAX_NAMED} more" if len(rules) > MAX_NAMED else ""
    return f"{words}: {len(findings)} ({', '.join(rules[:MAX_NAMED])}{more})"
