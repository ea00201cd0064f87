"""Turns one inspection into one HTML file for people: what was read, what was not, and where each text stands.

A pure function of its input. The file is self-contained: pictures are data URIs, nothing is loaded, nothing runs. All
that comes from a document is hostile until escaped, and a content security policy stands behind the escaping. It
knows neither artifacts nor files; whoever calls it stores the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from string import Template
from typing import Any

from sam2_mcp_worker.media.box_styles import STYLES
from sam2_mcp_worker.pipelines.report_document import (
    JPEG_SIGNATURE,
    column_heads,
    document,
    figures_html,
    inlined,
    say,
)
from sam2_mcp_worker.pipelines.report_html import both, points, text_html, words_for
from sam2_mcp_worker.pipelines.report_words import SOURCE_WORDS, page_words

# Browsers open 32 MB of inlined pictures (24 MB before Base64) at once; a 500-page report would be ten times that.
MAX_PICTURE_BYTES = 24_000_000
POINTS_PER_MM = 72 / 25.4

STATUS_WORDS = {"done": ("read", "읽음"), "failed": ("failed", "실패"), "unreached": ("not reached", "읽지 못함")}
MARK_WORDS = {
    "frame": "blue frame",
    "brackets": "orange brackets",
    "double": "double purple frame",
    "dots": "black dots on yellow",
}
KIND_KOREAN = {
    "text_layer": "텍스트 레이어",
    "ocr": "문자 인식으로 읽음",
    "region": "찾은 영역",
    "ink": "보았지만 읽지 못함",
}
COLUMNS = (
    ("Page", "쪽", ""),
    ("Status", "상태", ""),
    ("Source", "출처", ""),
    ("Characters", "글자 수", "n"),
    ("Smallest text", "가장 작은 글자", "n"),
    ("Seen, not read", "읽지 못한 곳", "n"),
    ("Time", "시간", "n"),
    ("Reason and notes", "사유와 참고", ""),
)

MAIN = Template("""$verdict
<section class="card wide" id="pages" aria-label="Pages">
<table>
<caption>Pages <span class="ko" lang="ko">쪽별 결과</span></caption>
<thead><tr>$columns</tr></thead>
<tbody>
$rows
</tbody>
</table>
</section>
<section class="card" aria-label="How to read the pictures">
<ul class="legend">$legend</ul>
</section>
$pages""")

PAGE = Template("""<section class="card page" id="page-$number" aria-labelledby="title-$number">
<div class="top"><h2 id="title-$number">Page $number</h2> $chip <span class="meta">$meta</span>
<a class="up" href="#pages">to the table</a></div>
<div class="sides">
<figure>$picture</figure>
<div>$words</div>
</div>
</section>""")


def render_report(inspection: Mapping[str, Any], pictures: Mapping[int, bytes]) -> str:
    """The whole report.

    Args:
        inspection: `source_name`, `created_at` (ISO 8601), `engine`, `coverage` (`total`, `done`, `failed`,
            `unreached`) and `pages`, as inspect_pdf collects them. A page that also has `lines` (`text` and
            `source`, in the order in which its overlay numbers them) shows those with their numbers; so does one with
            `regions` (None when nobody looked; `regions_reason` says what of the page was not looked at).
        pictures: overlay JPEGs by page number; inlined in page order up to `MAX_PICTURE_BYTES`.

    Returns:
        HTML that can be encoded as UTF-8 whatever the document held.
    """
    pages = _all_pages(inspection)
    shown = _inlined(pages, pictures)
    main = MAIN.substitute(
        verdict=_verdict(inspection["coverage"], pages),
        columns=column_heads(COLUMNS),
        rows="\n".join(_row(page) for page in pages),
        legend="".join(_legend()),
        pages="\n".join(_page(page, shown.get(page["page_number"]), pictures) for page in pages),
    )
    return document(
        name=inspection["source_name"],
        created_at=str(inspection["created_at"]),
        engine=inspection["engine"],
        main=main,
        footer="Sizes are in points (1 pt = 1/72 inch).",
    )


def _all_pages(inspection: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Pages in order; those that only the coverage names are added, because a missing row reads as a good page."""
    pages = {
        int(page["page_number"]): dict(page) | {"page_number": int(page["page_number"])} for page in inspection["pages"]
    }
    for status in ("failed", "unreached"):
        for number in inspection["coverage"][status]:
            pages.setdefault(int(number), {"page_number": int(number), "status": status})
    return [pages[number] for number in sorted(pages)]


def _inlined(pages: Sequence[Mapping[str, Any]], pictures: Mapping[int, bytes]) -> dict[int, bytes]:
    shown: dict[int, bytes] = {}
    room = MAX_PICTURE_BYTES
    for page in pages:
        picture = pictures.get(page["page_number"])
        if picture is not None and picture.startswith(JPEG_SIGNATURE) and len(picture) <= room:
            shown[page["page_number"]] = picture
            room -= len(picture)
    return shown


def _verdict(coverage: Mapping[str, Any], pages: Sequence[Mapping[str, Any]]) -> str:
    total, done = int(coverage["total"]), int(coverage["done"])
    failed, unreached = list(coverage["failed"]), list(coverage["unreached"])
    lost = total - done - len(failed) - len(unreached)
    complete = total > 0 and done == total and not failed and not unreached
    if complete:
        sentences = say(f"Complete: all {total} pages were read.", f"{total}쪽을 모두 읽었습니다.")
    elif total <= 0:
        sentences = say("Nothing was read: there are no pages.", "읽을 쪽이 없습니다.")
    else:
        sentences = _incomplete(total, done, failed, unreached, lost)
    css_class = "card verdict" if complete else "card verdict incomplete"
    figures = (
        (total, "pages", "전체"),
        (done, "read", "읽음"),
        (len(failed), "failed", "실패"),
        (len(unreached), "not reached", "읽지 못함"),
        (sum(page.get("characters") or 0 for page in pages), "characters", "글자"),
    )
    return (
        f'<section class="{css_class}" aria-label="Coverage">\n{sentences}'
        f"{_unread_ink(pages)}{figures_html(figures)}\n</section>"
    )


def _incomplete(total: int, done: int, failed: list[int], unreached: list[int], lost: int) -> str:
    english, korean = [], []
    for numbers, en, ko in ((failed, "failed", "실패"), (unreached, "not reached", "읽지 못함")):
        if numbers:
            english.append(f"{en}: {_pages_named(numbers)}")
            korean.append(f"{ko}: {_ranges(numbers)}쪽")
    if lost > 0:
        english.append(f"{lost} not accounted for")
        korean.append(f"확인되지 않음: {lost}쪽")
    headline = say(
        f"Incomplete: {done} of {total} pages were read ({'; '.join(english)}).",
        f"{total}쪽 가운데 {done}쪽만 읽었습니다({', '.join(korean)}).",
    )
    caution = both(
        "What is not found in this report may stand on a page that was not read.",
        "이 보고서에 없는 문구가 읽지 못한 쪽에 있을 수 있습니다.",
    )
    return f"{headline}<p>{caution}</p>\n"


def _unread_ink(pages: Sequence[Mapping[str, Any]]) -> str:
    marked = [page["page_number"] for page in pages if page.get("undetected_ink")]
    if not marked:
        return ""
    count = sum(page["undetected_ink"] for page in pages if page.get("undetected_ink"))
    places = "1 place" if count == 1 else f"{count:,} places"
    words = both(
        f"Something was seen but not read in {places} ({_pages_named(marked)}); the pictures mark them.",
        f"보았지만 읽지 못한 곳이 {count:,}군데 있습니다({_ranges(marked)}쪽).",
    )
    return f'<p class="warn">{words}</p>\n'


def _row(page: Mapping[str, Any]) -> str:
    number, status = page["page_number"], page["status"]
    read = status == "done"
    remarks = [page.get("reason"), *(page.get("notes") or [])]
    cells = (
        ("", f'<a href="#page-{number}">{number}</a>'),
        ("", _chip(status)),
        ("source", both(*words_for(SOURCE_WORDS, page.get("source") or "none")) if read else "–"),
        ("n", f"{page.get('characters') or 0:,}" if read else "–"),
        ("n", points(page.get("smallest_text_pt"))),
        ("n", f"{page.get('undetected_ink') or 0:,}" if read else "–"),
        ("n", _seconds(page.get("elapsed_ms"))),
        ("why", "<br>".join(text_html(remark) for remark in remarks if remark)),
    )
    return "<tr>" + "".join(f'<td class="{kind}">{cell}</td>' for kind, cell in cells) + "</tr>"


def _page(page: Mapping[str, Any], picture: bytes | None, pictures: Mapping[int, bytes]) -> str:
    number = page["page_number"]
    return PAGE.substitute(
        number=number,
        chip=_chip(page["status"]),
        meta=_meta(page),
        picture=_picture(number, picture, pictures.get(number)),
        words=page_words(page),
    )


def _meta(page: Mapping[str, Any]) -> str:
    parts = []
    width, height = page.get("width_pt"), page.get("height_pt")
    if width and height:
        parts.append(f"{width:.0f} × {height:.0f} pt ({width / POINTS_PER_MM:.0f} × {height / POINTS_PER_MM:.0f} mm)")
    if page.get("rotation_deg"):
        parts.append(f"rotated by {page['rotation_deg']:g}°")
    if page.get("smallest_text_pt") is not None:
        parts.append(f"smallest text {points(page['smallest_text_pt'])}")
    return " · ".join(parts)


def _picture(number: int, shown: bytes | None, given: bytes | None) -> str:
    if shown is not None:
        return inlined(shown, f"Page {number} with a numbered box around every piece of text that was found")
    if given is None:
        reason = "No picture of this page was made."
    elif given.startswith(JPEG_SIGNATURE):
        reason = f"Picture left out to keep this file small: see the artifact with the overlay of page {number}."
    else:
        reason = "The picture of this page is not a JPEG and was left out."
    return f'<p class="left-out">{reason}</p>'


def _legend() -> Iterable[str]:
    for kind, style in STYLES.items():
        words = both(f"{style.words} ({MARK_WORDS[style.shape]})", KIND_KOREAN[kind])
        yield f'<li><span class="mark {kind}" aria-hidden="true"></span>{words}</li>'


def _chip(status: str) -> str:
    kind = status if status in STATUS_WORDS else "failed"
    return f'<span class="chip {kind}">{both(*words_for(STATUS_WORDS, status))}</span>'


def _seconds(elapsed_ms: float | None) -> str:
    if not elapsed_ms:
        return "–"
    return f"{elapsed_ms / 1000:.1f} s" if elapsed_ms >= 100 else "&lt; 0.1 s"


def _pages_named(numbers: Sequence[int]) -> str:
    return f"page{'s' if len(set(numbers)) > 1 else ''} {_ranges(numbers)}"


def _ranges(numbers: Iterable[int]) -> str:
    """`1, 3–5, 9` for 1, 3, 4, 5, 9."""
    ordered = sorted(set(numbers))
    starts = [ordered[0], *(after for before, after in pairwise(ordered) if after != before + 1)]
    ends = [*(before for before, after in pairwise(ordered) if after != before + 1), ordered[-1]]
    return ", ".join(str(start) if start == end else f"{start}–{end}" for start, end in zip(starts, ends, strict=True))
