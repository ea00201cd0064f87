"""Reads the verdict that a workflow's agent wrote. What is not said clearly is refused, never guessed.

An answer ends with a JSON block (profile.ANSWER_FORM). Where there is none, a line such as `판정: 조건부 승인` gives
the label, and the findings count as not listed: that an unlisted finding is absent proves nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.evaluation.runs import Observed, RefusedRun, unique

# Field rule (mission.md): a shorter verdict is an agent that gave up; scored, it would read as "no findings".
MIN_VERDICT_CHARS = 300

LABEL_WORDS = {
    "approve": ("승인", "적합", "approve", "approved"),
    "conditional": (
        "조건부 승인",
        "조건부승인",
        "조건부 적합",
        "조건부",
        "수정 후 승인",
        "conditional",
        "conditional approval",
    ),
    "reject": ("반려", "부적합", "불승인", "승인 거부", "승인 불가", "거부", "reject", "rejected"),
    "none": ("판정 불가", "판단 불가", "none"),
}
LABEL_OF = {word: label for label, words in LABEL_WORDS.items() for word in words}
# The longest word at a place: 조건부 승인 is not 승인, 부적합 is not 적합; in 미승인 and disapproved there is none.
WORD = re.compile(
    rf"(?<![가-힣A-Za-z])(?:{'|'.join(re.escape(word) for word in sorted(LABEL_OF, key=len, reverse=True))})",
    re.IGNORECASE,
)
HEADED_LINE = re.compile(r"(?:판정|결론|심의 ?결과|verdict|label)\W{0,4}[:：]\s*(.+)", re.IGNORECASE)
# 승인할 수 없음, 승인 보류, not approved, non-approved: the word is there and something else is meant.
DENIED = re.compile(
    r"수\s*없|지\s*않|안\s*됨|불가|아님|보류|유보|대기|미정|여부|거절|취소|철회|연기|반대|곤란|[미비불]승인|부적"
    r"|\b(?:not|non|un|never|cannot|pending|withheld|denied|deferred|on hold)\b|n['’]t\b",
    re.IGNORECASE,
)
# 승인을 권고하기 어려움. What is wrong is said in such words too: only those right behind the label are about it.
DOUBTED = re.compile(r"어려|어렵|않|못|아니|없")
# An approval has nothing wrong to speak of, and one with a condition is none: 보완 후 승인, approved with conditions.
HEDGED = re.compile(
    rf"{DOUBTED.pattern}|조건|보완|수정|요청|예정|필요|미충족|condition|\b(?:unless|if|provided|subject|after|until|once|but)\b",
    re.IGNORECASE,
)
CLAUSE_END = re.compile(r"[.,;:(\[—–]|\s-\s")
FENCED = re.compile(r"```.*?```", re.DOTALL)
BLOCK = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer says; `run_ids` are the runs that it says to belong to, `findings` None where it lists none."""

    label: str
    findings: tuple[Observed, ...] | None
    run_ids: frozenset[str] = frozenset()


def read_verdict(text: str, asked: str = "") -> Verdict:
    """The verdict in an answer to `asked`: what it repeats of that, and its block, are no words of its own.

    Raises:
        RefusedRun: `verdict_too_short`, `verdict_without_label` or `verdict_ambiguous`.
    """
    repeated = {line.strip() for line in asked.splitlines()}
    own = [line for line in FENCED.sub("", text).splitlines() if line.strip() not in repeated]
    length = len(re.sub(r"\s+", " ", "\n".join(own)).strip())
    if length < MIN_VERDICT_CHARS:
        raise RefusedRun("verdict_too_short", f"{length} characters, at least {MIN_VERDICT_CHARS} make a verdict")
    blocks = list(_blocks(text))
    if blocks:
        return _of_blocks(blocks)
    return Verdict(_label_of_lines(text), None)


def _blocks(text: str) -> Iterator[dict[str, Any]]:
    for found in BLOCK.finditer(text):
        try:
            value = json.loads(found[1])
        except ValueError:
            continue
        # An agent may repeat the form that it was given before it fills it in.
        if isinstance(value, dict) and "label" in value and "|" not in str(value["label"]):
            yield value


def _of_blocks(blocks: list[dict[str, Any]]) -> Verdict:
    labels = {str(block["label"]).strip().casefold() for block in blocks}
    if len(labels) > 1:
        raise RefusedRun("verdict_ambiguous", f"blocks with different labels: {', '.join(sorted(labels))[:200]}")
    if any(block.get("findings") != blocks[-1].get("findings") for block in blocks):
        raise RefusedRun("verdict_ambiguous", "blocks with the same label and different findings")
    label = LABEL_OF.get(labels.pop())
    if label is None:
        raise RefusedRun("verdict_without_label", f"the block's label is {str(blocks[-1]['label'])[:100]!r}")
    run_ids = frozenset(str(block["run"]) for block in blocks if block.get("run") is not None)
    return Verdict(label, _findings(blocks[-1].get("findings")), run_ids)


def _findings(value: Any) -> tuple[Observed, ...] | None:
    """None where the list is absent or holds something that is no finding: half a list proves nothing either."""
    if not isinstance(value, list):
        return None
    found = []
    for item in value:
        if not isinstance(item, dict) or "kind" not in item or "about" not in item:
            return None
        found.append(Observed(str(item["kind"]), str(item["about"])))
    return unique(found)


def _label_of_lines(text: str) -> str:
    headed = [found[1] for found in HEADED_LINE.finditer(FENCED.sub("", text))]
    labels = {LABEL_OF[word[0].casefold()] for line in headed for word in WORD.finditer(line)}
    if not labels:
        raise RefusedRun("verdict_without_label", "no JSON block and no line with a label")
    if len(labels) > 1 or any(_is_doubted(line) for line in headed):
        raise RefusedRun("verdict_ambiguous", "the lines with a label can be read in more than one way")
    return labels.pop()


def _is_doubted(line: str) -> bool:
    """Whether a line has a label and takes it back, or may."""
    words = list(WORD.finditer(line))
    if not words:
        return False
    said = WORD.sub("", line)
    if any(LABEL_OF[word[0].casefold()] == "approve" for word in words):
        return bool(DENIED.search(said) or HEDGED.search(said))
    behind = CLAUSE_END.split(line[words[-1].end() :], maxsplit=1)[0]
    return bool(DENIED.search(said) or DOUBTED.search(behind))
