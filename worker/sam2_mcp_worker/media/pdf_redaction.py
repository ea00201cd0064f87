"""Redaction of PDFs as the server sees it: redacted, then verified by other libraries, in children of the redact pool.

    words = await find_words(redactors, file, ["김철수"], page_count=9, job=call_id)      # boxes of the text layer
    done = await redact_pdf(redactors, file, regions, words=["김철수"], out_path=..., job=call_id)

Nothing here parses a byte of a PDF. What cannot be verified is not returned: the file is removed and the error
`redaction_unverified` says what is left and where.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.pdf import PdfFile
from sam2_mcp_worker.media.pdf_geometry import BoxPt
from sam2_mcp_worker.media.redact_words import needles

Rgb = tuple[int, int, int]
BLACK: Rgb = (0, 0, 0)

# Pages looked at in one step: drawn twice at 100 dpi and read, 0.1 s each, 0.5 s when they are heavy.
PAGES_PER_STEP = 20
STEP_TIMEOUT_S = 30.0
# The rewriting is one step over the whole file, as is looking through its streams. Measured in CPU seconds: 0.2 for 100
# ordinary pages, 13 for one page of 60,000 objects; a busy machine takes four times as long.
_REWRITE_S = 60.0
_REWRITE_S_PER_PAGE = 0.1
_REWRITE_S_PER_MIB = 2.0
# As drawn; then without new font programs or with the failing pages as pictures; then with all as pictures.
_MAX_ATTEMPTS = 3
_LISTED_PROBLEMS = 3
# Of the files that a child writes beside the output, and removes unless it is killed.
LEFTOVER_SUFFIXES = (".cut.pdf", ".rgb")


@dataclass(frozen=True, slots=True)
class PdfRegion:
    """What is to be gone: a box in points from the top left of the displayed page, as inspect_pdf reports them."""

    page_number: int
    box_xyxy_pt: BoxPt


@dataclass(frozen=True, slots=True)
class FoundWord:
    """A word of the text layer; one for each line that it is broken over. `word` is in its comparable form."""

    region: PdfRegion
    word: str


@dataclass(frozen=True, slots=True)
class RedactedPage:
    """What was removed from a page: characters, drawings and pictures cut, annotations with the form fields among them.

    `rasterised` is empty, or why the page became a picture (200 dpi). `max_difference` outside of the regions is in
    levels of 255, beyond a shift by one pixel at 100 dpi.
    """

    page_number: int
    characters: int
    paths: int
    pictures: int
    annotations: int
    fields: int
    rasterised: str
    max_difference: int


@dataclass(frozen=True, slots=True)
class PdfRedaction:
    """A redacted and verified file. Counts are of what was removed from the document besides its pages.

    `decrypted`: the source had a password and the result has none. `signatures`: they were removed, since a changed
    file breaks them. `renamed`: titles, names or addresses that held a redacted word. `verified`: what was looked at.
    """

    path: Path
    page_count: int
    pages: tuple[RedactedPage, ...]
    decrypted: bool
    attachments: int
    scripts: int
    renamed: int
    signatures: int
    xfa: bool
    metadata: bool
    verified: tuple[str, ...]


async def find_words(
    redactors: TaskRunner, file: PdfFile, words: Iterable[str], *, page_count: int, job: str
) -> list[FoundWord]:
    """Every occurrence in the text layers, hidden text included; spaces, case and composition do not count.

    Words in pictures are not found here.

    Raises:
        WorkerError: those of `PdfFile.read_page`, or one of the runner's own.
    """
    forms = needles(words, 1)
    found: list[FoundWord] = []
    for pages in _steps(range(1, page_count + 1)):
        params = {"path": str(file.path), "password": file.password, "pages": pages, "forms": forms}
        result = await redactors.run("pdf_find_words", params, timeout_s=STEP_TIMEOUT_S, job=job)
        found += [FoundWord(PdfRegion(number, tuple(box)), form) for number, form, box in result["found"]]
    return found


async def redact_pdf(
    redactors: TaskRunner,
    file: PdfFile,
    regions: Sequence[PdfRegion],
    *,
    words: Sequence[str] = (),
    rgb: Rgb = BLACK,
    out_path: Path,
    job: str,
) -> PdfRedaction:
    """Write `out_path` without the content under the regions, and verify it.

    Args:
        regions: may be none when there are words: then what is beside the pages is cleaned.
        words: must be nowhere in the result, neither in text nor in any string or stream; their occurrences on pages
            must be among the regions (`find_words`). Annotations and form fields that hold one are removed on any page.
            Words in pictures are for OCR to check.
        rgb: colour of the cover. Only filling is offered: what is removed leaves nothing to blur.

    A page that cannot be cut safely, or does not pass the verification, is replaced by a picture of itself with blanked
    regions, and says so.

    Raises:
        WorkerError: no_regions, redaction_unverified; region_outside_page, page_out_of_range, password_required and
            the others of `PdfFile.page_count`; pdf_damaged; or one of the runner's own.
    """
    if not regions and not needles(words):
        raise WorkerError("no_regions", "there is nothing to redact", next_step="Name regions or phrases")
    run = _Run(redactors, file, regions, words, rgb, out_path, job)
    try:
        return await run.to_the_end(words)
    except BaseException:
        for suffix in (out_path.suffix, *LEFTOVER_SUFFIXES):
            out_path.with_suffix(suffix).unlink(missing_ok=True)
        raise


@dataclass(slots=True)
class _Findings:
    """Problems by page and of the whole file, and the differences that were seen.

    `other_text`: pages without regions whose text layer reads otherwise, for fonts were pruned too far, or since
    replacement texts are gone.
    """

    by_page: dict[int, list[str]]
    of_file: list[str]
    differences: dict[int, int]
    other_text: list[int]

    @property
    def all(self) -> list[str]:
        return [problem for problems in self.by_page.values() for problem in problems] + self.of_file


class _Run:
    def __init__(
        self,
        redactors: TaskRunner,
        file: PdfFile,
        regions: Sequence[PdfRegion],
        words: Sequence[str],
        rgb: Rgb,
        out_path: Path,
        job: str,
    ) -> None:
        self.redactors, self.file, self.regions = redactors, file, regions
        # A single character stands in every stream by chance: it is looked for in the text of the pages only.
        self.forms, self.page_forms = needles(words), needles(words, 1)
        self.rgb, self.out_path, self.job = rgb, out_path, job
        self.rasterise: dict[int, str] = {}
        self.subset_fonts = True

    async def to_the_end(self, words: Sequence[str]) -> PdfRedaction:
        for _ in range(_MAX_ATTEMPTS):
            report = await self._rewrite(words)
            findings = await self._verify(report)
            if not findings.all and not (findings.other_text and self.subset_fonts):
                return _result(self.out_path, report, findings, self.forms)
            if not self._do_otherwise(findings):
                break
        raise _unverified(findings.all)

    async def _rewrite(self, words: Sequence[str]) -> dict[str, Any]:
        params = {
            "path": str(self.file.path),
            "password": self.file.password,
            "regions": [[region.page_number, *region.box_xyxy_pt] for region in self.regions],
            "words": list(words),
            "rgb": list(self.rgb),
            "rasterise": {str(number): reason for number, reason in self.rasterise.items()},
            "subset_fonts": self.subset_fonts,
            "out_path": str(self.out_path),
        }
        page_count = await self.file.page_count(self.redactors, timeout_s=STEP_TIMEOUT_S, job=self.job)
        timeout_s = _whole_file_s(self.file.path, page_count)
        return await self.redactors.run("pdf_redact", params, timeout_s=timeout_s, job=self.job)

    async def _verify(self, report: dict[str, Any]) -> _Findings:
        findings = _Findings({}, [], {}, [])
        affected = {page["page_number"]: page for page in report["pages"]}
        untouched = {"rects": [], "raster_px_per_pt": 0.0}
        for numbers in _steps(range(1, report["page_count"] + 1)):
            pages = [
                {**untouched, "gone_boxes": report["elsewhere"].get(str(number), []), **affected.get(number, {}),
                 "page_number": number}
                for number in numbers
            ]  # fmt: skip
            params = {
                "before": str(self.file.path),
                "password": self.file.password,
                "after": str(self.out_path),
                "pages": pages,
                "forms": self.page_forms,
            }
            result = await self.redactors.run("pdf_verify_pages", params, timeout_s=STEP_TIMEOUT_S, job=self.job)
            for page in result["pages"]:
                findings.differences[page["page_number"]] = page["max_difference"]
                if not page["same_text"] and page["page_number"] not in affected:
                    findings.other_text.append(page["page_number"])
                if page["problems"]:
                    findings.by_page[page["page_number"]] = page["problems"]
        params = {"path": str(self.out_path), "forms": self.forms}
        timeout_s = _whole_file_s(self.out_path, report["page_count"])
        whole = await self.redactors.run("pdf_verify_file", params, timeout_s=timeout_s, job=self.job)
        findings.of_file = whole["problems"]
        return findings

    def _do_otherwise(self, findings: _Findings) -> bool:
        """Choose a safer way for the next attempt; False when there is none."""
        affected = {region.page_number for region in self.regions}
        if self.subset_fonts and (findings.other_text or not set(findings.by_page) <= affected):
            self.subset_fonts = False
            return True
        doubtful = set(findings.by_page) & affected if findings.by_page else affected
        fresh = doubtful - set(self.rasterise)
        for number in fresh:
            problems = findings.by_page.get(number) or findings.of_file
            self.rasterise[number] = problems[0]
        return bool(fresh)


def _whole_file_s(path: Path, page_count: int) -> float:
    """The hard limit of a step over the whole file."""
    return _REWRITE_S + page_count * _REWRITE_S_PER_PAGE + path.stat().st_size / 2**20 * _REWRITE_S_PER_MIB


def _steps(numbers: range) -> Iterable[list[int]]:
    return (list(numbers[i : i + PAGES_PER_STEP]) for i in range(0, len(numbers), PAGES_PER_STEP))


def _result(path: Path, report: dict[str, Any], findings: _Findings, forms: Sequence[str]) -> PdfRedaction:
    pages = tuple(
        RedactedPage(
            max_difference=findings.differences[page["page_number"]],
            **{name: page[name] for name in _PAGE_FIELDS},
        )
        for page in report["pages"]
    )
    verified = [
        f"{len(pages)} pages with regions: no text and nothing visible is left under them",
        f"all {report['page_count']} pages: the same outside of the regions, up to a shift by one pixel at 100 dpi",
        "the file: one revision, no metadata, attachments, scripts, thumbnails or replacement texts",
    ]
    others = report["page_count"] - len(pages)
    if others:
        verified.append(f"{others - len(findings.other_text)} of {others} other pages: the same text layer")
    if forms:
        verified.append(f"{len(forms)} words: in no text layer, string or stream of the file")
    return PdfRedaction(
        path=path,
        page_count=report["page_count"],
        pages=pages,
        decrypted=report["encrypted"],
        verified=tuple(verified),
        **{name: report[name] for name in _REPORT_FIELDS},
    )


_PAGE_FIELDS = ("page_number", "characters", "paths", "pictures", "annotations", "fields", "rasterised")
_REPORT_FIELDS = ("attachments", "scripts", "renamed", "signatures", "xfa", "metadata")


def _unverified(problems: Sequence[str]) -> WorkerError:
    more = f" and {len(problems) - _LISTED_PROBLEMS} more" if len(problems) > _LISTED_PROBLEMS else ""
    return WorkerError(
        "redaction_unverified",
        "the result did not pass its verification and is not returned: "
        + "; ".join(problems[:_LISTED_PROBLEMS])
        + more,
        next_step="Add regions for what is left, or redact pictures of the pages",
    )
