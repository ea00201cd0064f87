"""Phrases that were not found word by word, looked for by their meaning where the operator pays for that.

Owns what such a find is worth: a sentence for a person to look at, in place of `missing` or `cannot_tell`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sam2_mcp_worker.checks.findings import Verdict
from sam2_mcp_worker.checks.phrase_judge import PhraseFinding
from sam2_mcp_worker.checks.phrase_pages import PhraseLine
from sam2_mcp_worker.checks.reading import Reading
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.pipelines.paraphrases import Paraphrase, find_paraphrases
from sam2_mcp_worker.pipelines.phrase_judging import JudgedRow, Judgement
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import SpendBook, Usage, spend_scope

NOT_FOUND = ("missing", "cannot_tell")
# Requests are booked on this number: they are for all phrases together.
ALL_PHRASES = 1
# A request takes a second or two; an endpoint that gives no answer must leave the rest of the call its time.
MOST_S = 8.0
# With less of a call's time left the next call looks, so that what is found does not hang on how long reading took.
LEAST_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class Meaning:
    """The judgement with what was found by meaning, a note for the result, and what it cost by phrase number."""

    judgement: Judgement
    note: str = ""
    spent: dict[int, Usage] = field(default_factory=dict)


def late_for_meaning(services: Services, judgement: Judgement, deadline: Deadline) -> bool:
    """Whether phrases are left to be looked for by their meaning, and the next call has to do it."""
    embedder = services.embedder
    if embedder is None or embedder.trouble is not None or not any(map(_open, judgement.rows)):
        return False
    return deadline.remaining_s() < LEAST_SHARE * services.settings.call_budget_s


def _until(deadline: Deadline) -> Deadline:
    return Deadline.after(min(MOST_S, deadline.remaining_s() / 2), deadline.clock)


async def with_paraphrases(
    services: Services, judgement: Judgement, reading: Reading, *, job: str, deadline: Deadline
) -> Meaning:
    """The judgement as it is where nobody can look for meanings, or nothing is left to look for."""
    texts = [row.phrase for row in judgement.rows if _open(row)]
    book = SpendBook()
    with spend_scope(book, ALL_PHRASES):
        found = await find_paraphrases(services, texts, reading, job=job, deadline=_until(deadline))
    if found is None:
        return Meaning(judgement)
    pages = {page.number: page for page in reading.pages}

    def looked(row: JudgedRow) -> JudgedRow:
        near = found.found.get(row.phrase) if _open(row) else None
        if near is None:
            return row
        lines = [
            PhraseLine(near.sentence.page_number, i, pages[near.sentence.page_number].lines[i])
            for i in near.sentence.lines
        ]
        became = _perhaps(row.became, near, tuple(lines))
        if row.finding is None:
            return replace(row, became=became)
        # What was not read may hold the phrase itself: that stays unknown.
        verdict: Verdict = "review" if row.became.state == "missing" else "cannot_tell"
        finding = replace(row.finding, verdict=verdict, what=became.reason, page=became.page_number)
        return replace(row, became=became, finding=finding)

    return Meaning(replace(judgement, rows=tuple(map(looked, judgement.rows))), found.note, book.take())


def _open(row: JudgedRow) -> bool:
    """Whether it is needed and was not found."""
    return row.finding is not None and row.became.state in NOT_FOUND


def _perhaps(became: PhraseFinding, near: Paraphrase, lines: tuple[PhraseLine, ...]) -> PhraseFinding:
    reason = (
        f"not found in these words ({became.state}); a sentence is close to it in meaning ({near.likeness:.2f}, by the "
        "embeddings endpoint), which proves nothing; a person has to look"
    )
    return replace(
        became,
        state="review",
        reason=reason,
        source=lines[0].line.source if lines else None,
        lines=lines,
        read_as=near.sentence.text,
    )
