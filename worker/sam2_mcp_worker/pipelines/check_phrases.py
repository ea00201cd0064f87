"""Holds phrases, or a whole rule pack, against everything that can be read of a document inside a call's budget.

Owns the order of work: read, judge, measure, label, report. What the call does not come to goes on over the cursor;
until then nothing is called missing.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.phrase_rules import texts_of
from sam2_mcp_worker.checks.phrases import checked_phrases
from sam2_mcp_worker.checks.reading import Reading
from sam2_mcp_worker.checks.rule_packs import RulePack
from sam2_mcp_worker.checks.verdict import VerdictLabel, label_of
from sam2_mcp_worker.cursors import number_ranges
from sam2_mcp_worker.deadline import Deadline, current_deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import Job, Progress
from sam2_mcp_worker.pipelines.check_report import write_report
from sam2_mcp_worker.pipelines.document_reading import open_document
from sam2_mcp_worker.pipelines.findings_delivery import Place, deliver, from_cursor, mark_of, to_cursor
from sam2_mcp_worker.pipelines.findings_report import FindingsReport
from sam2_mcp_worker.pipelines.gathered import Gathered, gather, sound_key
from sam2_mcp_worker.pipelines.minimum_findings import minimum_findings
from sam2_mcp_worker.pipelines.page_documents import PdfDocument
from sam2_mcp_worker.pipelines.phrase_check_facts import counted, unread_sentences
from sam2_mcp_worker.pipelines.phrase_judging import Judgement, judge_asked, judge_pack, not_judged, so_far
from sam2_mcp_worker.pipelines.phrase_meaning import late_for_meaning, with_paraphrases
from sam2_mcp_worker.pipelines.phrase_rows import (
    Row,
    marks_of,
    numbered_rows,
    report_row,
    row_chars,
    told_row,
)
from sam2_mcp_worker.pipelines.phrase_visibility import lines_to_see, seen_only
from sam2_mcp_worker.pipelines.read_documents import Document, ReadDocument, ReadRequest
from sam2_mcp_worker.pipelines.reading_choice import Mode
from sam2_mcp_worker.pipelines.rule_checks import RuleChecks, check_rules
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import Unit, Usage

TOOL = "check_phrases"
# Raise it whenever results or the cursors that count their rows mean something else.
RESULT_VERSION = 1
# Pages times wordings, about a millisecond each: more is judged once, when everything is read.
MOST_TO_JUDGE_TWICE = 2000
# Judging and measuring end so much before the call's end.
REPORT_S = 1.0
# Of a result's characters, what is not rows: coverage, counts, label, notes, addresses.
REST_CHARS = 8000
# Notes and sentences about what was not read; the report has all of them, whole.
MAX_NOTES = 12
NOTE_CHARS = 250
VERDICT_ORDER = ("not_met", "review", "cannot_tell", "met")
READING = "the document is still being read"
JUDGING = "everything is read, the judging still goes on"
COLUMNS = (
    ("Phrase or rule", "문구 또는 규칙"),
    ("State", "상태"),
    ("Place", "위치"),
    ("Read as", "읽은 내용"),
    ("Why", "사유"),
)


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of one call. Without phrases the rule pack is judged whole; `date` is ISO, empty for today."""

    source: str = ""
    text: str = field(default="", repr=False)
    phrases: Sequence[str] = ()
    pages: str = ""
    password: str = field(default="", repr=False)
    mode: Mode = "auto"
    date: str = ""
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class PhraseCheck:
    """What one call delivers: verdicts as of now.

    `phrases` and `rules` are the rows of this result as JSON, `rows_left` more are to come; `counts` are findings by
    kind and verdict. `unread` says in sentences what was not read. `costs` are by unit of work.
    """

    gathered: Gathered
    pack: RulePack
    day: datetime.date
    asked: tuple[str, ...]
    phrases: list[dict[str, Any]]
    rules: list[dict[str, Any]]
    rows_left: int
    counts: dict[str, dict[str, int]]
    label: VerdictLabel
    notes: tuple[str, ...]
    unread: tuple[str, ...]
    report: Artifact | None
    costs: list[tuple[dict[int, Usage], Unit]]
    cursor: str | None


async def check_phrases(services: Services, request: Request, progress: Progress | None = None) -> PhraseCheck:
    """Read, or go on reading, until the current deadline, and judge what is read by then.

    Raises:
        WorkerError: source, text, phrases, pages, date or cursor are wrong, or nothing of the document can be read.
    """
    deadline = current_deadline()
    asked = tuple(dict.fromkeys(phrase.text for phrase in checked_phrases(request.phrases)))
    day = _day(request.date)
    pack = services.rule_pack.on(day)
    document = await open_document(
        services, ReadRequest(request.source, request.text, request.pages, request.password, request.mode)
    )
    key = cache_key(TOOL, RESULT_VERSION, document.key, sound_key(document), asked, day.isoformat(), repr(pack))
    place = from_cursor(request.cursor, TOOL, key, 1)
    gathered = await gather(document, place.began_with[0], deadline, not request.cursor.strip(), progress)
    check = _Check(services, request, document, pack, day, asked, key, gathered)
    return await check.deliver(place, deadline)


def _day(text: str) -> datetime.date:
    if not text.strip():
        return datetime.datetime.now().astimezone().date()
    try:
        return datetime.date.fromisoformat(text.strip())
    except ValueError as error:
        raise WorkerError(
            "date_invalid",
            f"date={text[:40]!r} is no day",
            rule="the day on which the advertisement runs, as YYYY-MM-DD",
            next_step="give it like 2026-03-31, or leave it out for today",
        ) from error


@dataclass(slots=True)
class _Check:
    """One call, from what was read to its result."""

    services: Services
    request: Request
    document: Document
    pack: RulePack
    day: datetime.date
    asked: tuple[str, ...]
    key: str
    gathered: Gathered
    notes: list[str] = field(default_factory=list)
    spent_on_meaning: dict[int, Usage] = field(default_factory=dict)

    @property
    def read_whole(self) -> bool:
        """Whether going on reading brings nothing."""
        return all(one.complete for one in self._parts)

    @property
    def _parts(self) -> list[ReadDocument]:
        return [one for one in (self.gathered.main, self.gathered.sound) if one is not None]

    @property
    def reading(self) -> Reading:
        """Of pages or frames."""
        return self.gathered.main.reading

    async def deliver(self, place: Place, deadline: Deadline) -> PhraseCheck:
        """The result of this call."""
        began = (self.gathered.main.began_with,)
        if not self.read_whole:
            return await self._partial(began, deadline)
        judgement = await self._judged(deadline)
        if judgement is None:
            return self._told_so_far(not_judged(self.asked, self.pack, self.gathered, JUDGING), began, JUDGING)
        if late_for_meaning(self.services, judgement, deadline):
            return self._told_so_far(judgement, began, JUDGING)
        judgement = await self._by_meaning(judgement, deadline)
        checks = await self._measured(judgement, deadline)
        judgement = seen_only(judgement, checks, self.reading)
        findings = self._findings(judgement, checks)
        rows = numbered_rows(judgement.rows, [*judgement.others, *self._of_minimums(judgement, checks)])
        told = [(row, told_row(row, self.pack, self.reading, checks.measures)) for row in rows]
        label = label_of(findings, self._nothing_open(checks), self.pack.verdict)
        worst = sorted(told, key=lambda one: VERDICT_ORDER.index(one[0].verdict))
        mark = mark_of([one for _, one in worst])
        delivery = deliver(worst, mark, place, self._room, lambda one: row_chars(one[1]))
        if delivery.again:
            self.notes.append(
                "pages were read that had failed before: findings are told again, in place of those before"
            )
        self.notes += checks.undone
        waiting = bool(checks.waiting) or not delivery.complete
        report = None if checks.waiting else await self._report(told, label, deadline)
        cursor = to_cursor(TOOL, self.key, Place(began, delivery.told, delivery.mark)) if waiting else None
        return self._result(list(delivery.items), delivery.total - delivery.told, findings, label, report, cursor)

    async def _partial(self, began: tuple[str, ...], deadline: Deadline) -> PhraseCheck:
        """What was found stands, what was not found may stand on what is still to be read."""
        pages = sum(page.status == "done" for reading in self.gathered.readings for page in reading.pages)
        wordings = len(self.asked) or len(texts_of((*self.pack.phrases, *self.pack.stale)))
        judgement = await self._judged(deadline) if pages * wordings <= MOST_TO_JUDGE_TWICE else None
        judgement = judgement or not_judged(self.asked, self.pack, self.gathered, READING)
        return self._told_so_far(so_far(judgement), began, READING)

    def _told_so_far(self, judgement: Judgement, began: tuple[str, ...], why: str) -> PhraseCheck:
        """As many rows as fit; the call that has read and judged all tells all of them."""
        rows = numbered_rows(judgement.rows, ())
        told = [(row, told_row(row, self.pack, self.reading, {})) for row in rows]
        delivery = deliver(told, "", Place(), self._room, lambda one: row_chars(one[1]))
        findings = self._findings(judgement, RuleChecks((), {}))
        label = VerdictLabel("none", (why,))
        cursor = to_cursor(TOOL, self.key, Place(began))
        return self._result(list(delivery.items), delivery.total - delivery.told, findings, label, None, cursor)

    async def _judged(self, deadline: Deadline) -> Judgement | None:
        """None while judging goes on behind the deadline, for the next call."""

        def judge() -> Judgement:
            if self.asked:
                return judge_asked(self.asked, self.pack, self.gathered)
            return judge_pack(self.pack, self.gathered, self.day)

        async def start(job: Job) -> None:
            job.coverage.mark_done(1, await asyncio.to_thread(judge))

        # Of this process alone, as jobs are; a page that was read better since is another state.
        state = cache_key(self.key, "judged", hash(self.gathered.readings), self.gathered.sound_trouble)
        async with self.services.jobs.join(state, (1,), start) as job:
            # The judging thread slows down what is left to do: telling that it goes on took a second beside it.
            await job.wait(Deadline(deadline.at_s - REPORT_S, deadline.clock))
            job.raise_error()
            judged: Judgement | None = job.coverage.done.get(1)
            return judged

    async def _by_meaning(self, judgement: Judgement, deadline: Deadline) -> Judgement:
        found = await with_paraphrases(self.services, judgement, self.reading, job=self.key, deadline=deadline)
        self.spent_on_meaning = found.spent
        if found.note:
            self.notes.append(found.note)
        return found.judgement

    async def _measured(self, judgement: Judgement, deadline: Deadline) -> RuleChecks:
        """Sizes, contrasts and files; of phrases that were asked for the measures alone."""
        phrases = {
            row.rule.id if row.rule is not None else row.phrase: [
                [(line.page_number, line.index) for line in lines]
                for lines in (row.became.lines, *row.became.elsewhere)
            ]
            for row in judgement.rows
            if row.became.lines
        }
        until = Deadline(deadline.at_s - REPORT_S, deadline.clock)
        return await check_rules(
            self.services,
            self.document.file,
            self.reading,
            None if self.asked else self.pack,
            phrases,
            further=lines_to_see(judgement, self.reading),
            password=self.request.password,
            deadline=until,
        )

    def _of_minimums(self, judgement: Judgement, checks: RuleChecks) -> list[Finding]:
        return [] if self.asked else minimum_findings(self.pack, judgement, checks, self.gathered)

    def _findings(self, judgement: Judgement, checks: RuleChecks) -> list[Finding]:
        """All that the label follows from, met ones too."""
        of_phrases = [row.finding for row in judgement.rows if row.finding is not None]
        return [*of_phrases, *judgement.others, *self._of_minimums(judgement, checks)]

    @property
    def _on_some_pages(self) -> str:
        """Which pages were asked for, where that is not all."""
        if isinstance(self.document, PdfDocument) and len(self.document.pages.numbers) < self.document.pages.page_count:
            return number_ranges(self.document.pages.numbers)
        return ""

    def _nothing_open(self, checks: RuleChecks) -> bool:
        unread = not all(reading.whole for reading in self.gathered.readings) or bool(self.gathered.sound_trouble)
        return not (unread or checks.waiting or checks.undone or self._on_some_pages)

    @property
    def _room(self) -> int:
        return max(1, self.services.settings.result_max_chars - REST_CHARS)

    async def _report(
        self, told: Sequence[tuple[Row, dict[str, Any]]], label: VerdictLabel, deadline: Deadline
    ) -> Artifact:
        rows = [row for row, _ in told]
        report = FindingsReport(
            name=self.document.name,
            created_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            engine=self.gathered.main.engine,
            caption=(f"Phrases and rules ({self.pack.title}, {self.day.isoformat()})", "문구와 규칙"),
            columns=COLUMNS,
            rows=[report_row(row, fields) for row, fields in told],
            label=label.label,
            because=label.said,
            unread=unread_sentences(self.gathered),
            notes=tuple(self._all_notes()),
        )
        return await write_report(self.services, self.gathered.main, marks_of(rows, self.reading), report, deadline)

    def _all_notes(self) -> list[str]:
        some = self._on_some_pages
        asked = [f"only pages {some} were asked for: what is not on them may stand on another"] if some else []
        return list(dict.fromkeys([*asked, *self.notes, *(note for one in self._parts for note in one.notes)]))

    def _result(
        self,
        rows: Sequence[tuple[Row, dict[str, Any]]],
        rows_left: int,
        findings: Sequence[Finding],
        label: VerdictLabel,
        report: Artifact | None,
        cursor: str | None,
    ) -> PhraseCheck:
        in_order = sorted(rows, key=lambda one: one[0].number)
        return PhraseCheck(
            gathered=self.gathered,
            pack=self.pack,
            day=self.day,
            asked=self.asked,
            phrases=[fields for row, fields in in_order if row.phrase is not None],
            rules=[fields for row, fields in in_order if row.phrase is None],
            rows_left=rows_left,
            counts=counted(findings),
            label=label,
            notes=_few(self._all_notes()),
            unread=_few(unread_sentences(self.gathered)),
            report=report,
            costs=[*((one.spent, one.unit) for one in self._parts), (self.spent_on_meaning, "phrase")],
            cursor=cursor,
        )


def _few(sentences: Sequence[str]) -> tuple[str, ...]:
    told = [one if len(one) <= NOTE_CHARS else one[: NOTE_CHARS - 1] + "…" for one in sentences[:MAX_NOTES]]
    more = len(sentences) - MAX_NOTES
    return (*told, *([f"{more} more of these are in the report"] if more > 0 else []))
