"""Text sizes, contrasts and file rules of a document that was read: measured inside the budget, then judged by a pack.

Owns which pages and lines are measured, and what becomes of those that could not be: a page that failed gives
`cannot_tell` and never a defect, a page that was not come to is named, for the next call. Measures are cached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sam2_mcp_worker.checks.attachments import attachment_findings, listed_names
from sam2_mcp_worker.checks.contrast import ContrastRange, contrast_findings
from sam2_mcp_worker.checks.file_rules import PageFacts, file_findings
from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.line_groups import LineRef, PhrasePlaces
from sam2_mcp_worker.checks.reading import Reading, ReadPage
from sam2_mcp_worker.checks.rule_packs import RulePack
from sam2_mcp_worker.checks.rule_packs.sections import FileRules
from sam2_mcp_worker.checks.text_size import (
    NEAR_BORDER_PX,
    PageScale,
    TextSize,
    picture_scale,
    size_findings,
    sizes_of,
)
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S, Job
from sam2_mcp_worker.media.pdf import DEFAULT_PX_PER_PT, PAPER_PT, PdfFile
from sam2_mcp_worker.pipelines.page_facts import pdf_page_facts, picture_page_facts
from sam2_mcp_worker.pipelines.page_measures import MAX_LINES, Question, measure_key, measure_pdf_page, measure_picture
from sam2_mcp_worker.pipelines.pdf_job import key_of
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile


@dataclass(frozen=True, slots=True)
class LineMeasure:
    """Facts of one line, whether a rule asks for them or not; `contrast` is None where nobody could measure it."""

    size: TextSize | None
    contrast: ContrastRange | None


@dataclass(frozen=True, slots=True)
class RuleChecks:
    """`findings` are all verdicts, `met` ones too; `measures` are of the lines that were asked for.

    `undone` says in sentences what could not be measured at all; `waiting` are pages that were not come to in time: a
    later call measures them, and until then nothing is approved.
    """

    findings: tuple[Finding, ...]
    measures: dict[LineRef, LineMeasure]
    undone: tuple[str, ...] = ()
    waiting: tuple[int, ...] = ()


@dataclass(slots=True)
class _Measured:
    """What is known by now: answers of the measuring by page, and names of attached files."""

    pages: dict[int, dict[str, Any]] = field(default_factory=dict)
    failed: dict[int, WorkerError] = field(default_factory=dict)
    waiting: tuple[int, ...] = ()
    attached: list[str] | None = None


async def check_rules(
    services: Services,
    file: StoredFile | None,
    reading: Reading,
    pack: RulePack | None,
    phrases: PhrasePlaces,
    *,
    further: Collection[LineRef] = (),
    password: str = "",
    deadline: Deadline,
) -> RuleChecks:
    """Measure and judge what of a document is done.

    Args:
        file: the document; None, or a text, a sound or a video, have no pages to measure.
        phrases: the lines that carry phrases; of a phrase that stands in several places one good place is enough.
        further: lines that are only measured, to know whether they can be seen.
        pack: None for the measures of these lines alone.
    """
    if file is None or reading.kind not in ("pdf", "image"):
        return RuleChecks((), {})
    lines = _lines_of(phrases) | set(further)
    questions = _questions(reading, pack, lines)
    measured = await _measure(services, file, password, reading, questions, deadline)
    files = pack.files if pack is not None else None
    if files is not None and (files.attachments or files.checklist_words):
        await _list_attached(services, file, password, reading, measured, deadline)
    judged = await asyncio.to_thread(_judge, reading, pack, phrases, lines, questions, measured)
    return RuleChecks(judged.findings, judged.measures, _undone(questions, measured, reading), measured.waiting)


def _lines_of(phrases: PhrasePlaces) -> set[LineRef]:
    return {ref for places in phrases.values() for refs in places for ref in refs}


def _questions(reading: Reading, pack: RulePack | None, lines: Collection[LineRef]) -> dict[int, Question]:
    """What to ask of each page that was read; pages with nothing to ask are left out."""
    files = pack.files if pack is not None else None
    everything = pack is not None and pack.contrast is not None and pack.contrast.applies_to == "all"
    found: dict[int, Question] = {}
    for page in reading.pages:
        if page.status != "done":
            continue
        indices = range(len(page.lines)) if everything else sorted(ref[1] for ref in lines if ref[0] == page.number)
        bleed_mm = files.min_bleed_mm if files is not None else None
        question = Question(tuple(indices)[:MAX_LINES], _looks_at_pages(files), bleed_mm)
        if not question.empty:
            found[page.number] = question
    return found


def _looks_at_pages(rules: FileRules | None) -> bool:
    """Whether a rule asks for more than attached files."""
    return rules is not None and bool(
        rules.page_sizes_mm or rules.colour_spaces or rules.min_bleed_mm or rules.min_image_dpi
        or rules.fonts_embedded or not rules.empty_pages_allowed or not rules.cut_off_allowed
    )  # fmt: skip


async def _measure(
    services: Services,
    file: StoredFile,
    password: str,
    reading: Reading,
    questions: Mapping[int, Question],
    deadline: Deadline,
) -> _Measured:
    pages = {page.number: page for page in reading.pages}
    pdf, document_key = PdfFile(file.path, password), key_of(file, password)

    async def work(number: int) -> dict[str, Any]:
        page, question = pages[number], questions[number]
        if reading.kind == "pdf":
            return await measure_pdf_page(services, pdf, document_key, page, question)
        return await measure_picture(services, file.path, file.sha256, page, question)

    async def start(job: Job) -> None:
        limit = services.settings.decoder_processes
        await fan_out(job.coverage, work, deadline=Deadline.after(JOB_LIMIT_S), limit=limit)

    # A job, for a page may take longer than one call has left: begun anew in each call, it would never be done.
    asked = [measure_key(document_key, pages[number], question) for number, question in questions.items()]
    async with services.jobs.join(cache_key("measures", asked), tuple(questions), start) as job:
        await job.wait(deadline)
        job.raise_error()
        coverage = job.coverage
        return _Measured(dict(coverage.done), dict(coverage.failed), coverage.unreached)


async def _list_attached(
    services: Services, file: StoredFile, password: str, reading: Reading, measured: _Measured, deadline: Deadline
) -> None:
    """The names of attached files; None where they could not be listed."""
    if reading.kind != "pdf":
        measured.attached = []
        return

    async def compute() -> list[str]:
        answer = await services.redactors.run(
            "pdf_attached",
            {"path": str(file.path), "password": password},
            timeout_s=services.settings.step_timeout_s,
            job=file.sha256,
        )
        return list(answer["names"])

    key = cache_key("attached", *key_of(file, password))
    try:
        async with asyncio.timeout(deadline.remaining_s()):
            measured.attached = await services.cache.get_or_compute(key, compute)
    except (WorkerError, TimeoutError):
        measured.attached = None


def _judge(
    reading: Reading,
    pack: RulePack | None,
    phrases: PhrasePlaces,
    lines: Collection[LineRef],
    questions: Mapping[int, Question],
    measured: _Measured,
) -> RuleChecks:
    near_px = pack.text.near_border_px if pack is not None and pack.text is not None else NEAR_BORDER_PX
    sizes = sizes_of(reading, _scales(reading, measured), near_px)
    contrasts = _contrasts(questions, measured)
    measures = {ref: LineMeasure(sizes.get(ref), contrasts.get(ref)) for ref in lines}
    if pack is None:
        return RuleChecks((), measures)
    found = [
        *size_findings(pack.text, reading, sizes, phrases),
        *contrast_findings(pack.contrast, reading, sizes, contrasts, phrases),
        *_file_findings(pack.files, reading, questions, measured),
    ]
    return RuleChecks(tuple(found), measures)


def _scales(reading: Reading, measured: _Measured) -> dict[int, PageScale]:
    """How large each page is on paper, and how finely OCR saw it."""
    if reading.kind == "image":
        return {page.number: picture_scale(measured.pages.get(page.number, {}).get("dpi")) for page in reading.pages}
    return {page.number: _pdf_scale(page, measured.pages.get(page.number, {})) for page in reading.pages}


def _pdf_scale(page: ReadPage, answer: Mapping[str, Any]) -> PageScale:
    # Captures of screens are longer than any paper: a point is a pixel there, and millimetres mean nothing.
    on_paper = page.size is not None and max(page.size) <= PAPER_PT
    facts = answer.get("facts") or {}
    return PageScale(facts.get("user_unit", 1.0) if on_paper else None, answer.get("px_per_pt", DEFAULT_PX_PER_PT))


def _contrasts(questions: Mapping[int, Question], measured: _Measured) -> dict[LineRef, ContrastRange]:
    """The ranges by line; of pages that failed the reason."""
    found: dict[LineRef, ContrastRange] = {}
    for number, answer in measured.pages.items():
        found |= {(number, index): _range(told) for index, told in answer["contrast"]}
    for number, error in measured.failed.items():
        failed = ContrastRange(1.0, 21.0, reason=f"it could not be measured ({error.reason})")
        found |= {(number, index): failed for index in questions[number].lines}
    return found


def _range(told: Mapping[str, Any]) -> ContrastRange:
    if "reason" in told:
        return ContrastRange(1.0, 21.0, reason=told["reason"], unseen=told["unseen"])
    return ContrastRange(told["low"], told["high"])


def _file_findings(
    rules: FileRules | None, reading: Reading, questions: Mapping[int, Question], measured: _Measured
) -> tuple[Finding, ...]:
    if rules is None:
        return ()
    of_page = pdf_page_facts if reading.kind == "pdf" else picture_page_facts
    facts: list[PageFacts] = [
        of_page(page, measured.pages[page.number], rules.min_bleed_mm)
        for page in reading.pages
        if page.number in measured.pages and questions[page.number].facts
    ]
    failed = [
        Finding("file_defect", "files", "cannot_tell", f"it could not be looked at: {why}", rules.basis, page=number)
        for number, why in _without_facts(questions, measured)
    ]
    listed = listed_names(reading, rules.checklist_words)
    attached = attachment_findings(rules, measured.attached, listed, may_hold_files=reading.kind == "pdf")
    return (*file_findings(rules, facts), *failed, *attached)


def _without_facts(questions: Mapping[int, Question], measured: _Measured) -> list[tuple[int, str]]:
    """Pages whose facts were asked for and are not known, at least in part, and why."""
    failed = [(number, error.reason) for number, error in measured.failed.items() if questions[number].facts]
    partly = [(number, answer.get("facts_missing", "")) for number, answer in measured.pages.items()]
    return sorted(failed + [(number, why) for number, why in partly if why])


def _undone(questions: Mapping[int, Question], measured: _Measured, reading: Reading) -> tuple[str, ...]:
    told = [f"page {number} could not be measured: {error.reason}" for number, error in measured.failed.items()]
    told += [
        f"page {number}: what its file is made of could not be told: {answer['facts_missing']}"
        for number, answer in measured.pages.items()
        if answer.get("facts_missing")
    ]
    counts = {page.number: len(page.lines) for page in reading.pages}
    for number, question in questions.items():
        if len(question.lines) == MAX_LINES and counts[number] > MAX_LINES:
            told.append(f"page {number}: contrast was measured of the first {MAX_LINES} of {counts[number]} lines")
    return tuple(told)


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Findings in the order in which people want them: defects, doubts, what is not known, what is kept."""
    order = ("not_met", "review", "cannot_tell", "met")
    return sorted(findings, key=lambda one: order.index(one.verdict))
