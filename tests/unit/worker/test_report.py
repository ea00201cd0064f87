"""The HTML report: says first what was not read, shows every page, and lets nothing from a document act."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tests.fakes.report_reader import ALLOWED_ATTRIBUTES, ALLOWED_TAGS, HOSTILE, read, words

from sam2_mcp_worker.media.box_styles import STYLES
from sam2_mcp_worker.pipelines import report
from sam2_mcp_worker.pipelines.report import MAX_PICTURE_BYTES, render_report
from sam2_mcp_worker.pipelines.report_document import CSS
from sam2_mcp_worker.pipelines.report_words import MAX_REGIONS, MAX_TEXT_CHARACTERS


def page(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "page_number": number,
        "status": "done",
        "source": "text_layer",
        "characters": 1200,
        "smallest_text_pt": 5.76,
        "text": f"{number}쪽의 글",
        "ocr_text": None,
        "undetected_ink": 0,
        "width_pt": 595.28,
        "height_pt": 841.89,
        "rotation_deg": 0,
        "elapsed_ms": 2340,
        "reason": None,
        "notes": [],
    } | changes


def lost_page(number: int, status: str, reason: str) -> dict[str, Any]:
    return page(number, status=status, source="none", characters=0, smallest_text_pt=None, text="", reason=reason)


def inspection(pages: list[dict[str, Any]], **coverage: Any) -> dict[str, Any]:
    failed = [item["page_number"] for item in pages if item["status"] == "failed"]
    unreached = [item["page_number"] for item in pages if item["status"] == "unreached"]
    done = len(pages) - len(failed) - len(unreached)
    return {
        "source_name": "안내장.pdf",
        "created_at": "2026-11-03T09:12:40+09:00",
        "engine": "local OCR",
        "coverage": {"total": len(pages), "done": done, "failed": failed, "unreached": unreached} | coverage,
        "pages": pages,
    }


def jpeg(size: int = 8) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (size, size), (9, 99, 199)).save(buffer, "JPEG")
    return buffer.getvalue()


def test_complete_inspection_says_so_with_its_numbers() -> None:
    text = words(render_report(inspection([page(1), page(2)]), {}))
    assert "Complete: all 2 pages were read." in text
    assert "2쪽을 모두 읽었습니다." in text
    assert "Incomplete" not in text


def test_incomplete_inspection_says_at_the_top_which_pages_are_missing_and_what_that_means() -> None:
    pages = [
        page(1),
        lost_page(2, "failed", "decoder_died: x"),
        *(lost_page(n, "unreached", "late") for n in (3, 4, 6)),
    ]
    document = render_report(inspection([*pages, page(5)]), {})
    text = words(document)
    assert "Incomplete: 2 of 6 pages were read (failed: page 2; not reached: pages 3–4, 6)." in text
    assert "6쪽 가운데 2쪽만 읽었습니다(실패: 2쪽, 읽지 못함: 3–4, 6쪽)." in text
    assert "What is not found in this report may stand on a page that was not read." in text
    assert document.index("Incomplete:") < document.index("<table>")
    assert "Complete:" not in text


def test_page_that_only_the_coverage_names_still_gets_its_row_and_section() -> None:
    document = render_report(inspection([page(1)], total=3, failed=[3], unreached=[2]), {})
    reader = read(document)
    assert [attrs["id"] for tag, attrs in reader.tags if tag == "section" and "page-" in (attrs.get("id") or "")] == [
        "page-1",
        "page-2",
        "page-3",
    ]
    assert "This page was not reached." in words(document) and "This page could not be read." in words(document)


@pytest.mark.parametrize(
    ("coverage", "said"),
    [
        ({"total": 5, "done": 2}, "Incomplete: 2 of 5 pages were read (3 not accounted for)."),
        ({"total": 0, "done": 0}, "Nothing was read: there are no pages."),
    ],
)
def test_coverage_that_does_not_add_up_is_never_called_complete(coverage: dict[str, int], said: str) -> None:
    pages = [page(1), page(2)] if coverage["total"] else []
    text = words(render_report(inspection(pages, **coverage), {}))
    assert said in text
    assert "Complete:" not in text


def test_ink_that_was_seen_but_not_read_is_said_at_the_top() -> None:
    pages = [page(1, undetected_ink=2), page(2), page(3, undetected_ink=1)]
    text = words(render_report(inspection(pages), {}))
    assert "Something was seen but not read in 3 places (pages 1, 3)" in text
    assert "seen but not read" not in words(render_report(inspection([page(1)]), {}))


def test_table_holds_each_pages_facts_and_links_to_its_section() -> None:
    rows = [
        page(1, source="ocr", characters=12345, undetected_ink=4, notes=["cut at a seam"]),
        lost_page(2, "failed", "password_required: x"),
    ]
    document = render_report(inspection(rows), {})
    cells = re.findall(r"<td[^>]*>(.*?)</td>", document)
    first, second = cells[:8], cells[8:16]
    assert first[0] == '<a href="#page-1">1</a>' and 'id="page-1"' in document
    assert first[2].startswith("OCR")
    assert first[3:7] == ["12,345", "5.8 pt", "4", "2.3 s"]
    assert first[7] == "cut at a seam"
    quick = render_report(inspection([page(1, elapsed_ms=40)]), {})
    assert "&lt; 0.1 s" in quick and "0.0 s" not in quick
    assert second[2:6] == ["–"] * 4 and second[7] == "password_required: x"


def test_section_states_size_and_rotation() -> None:
    text = words(render_report(inspection([page(1, rotation_deg=90), page(2, width_pt=0, height_pt=0)]), {}))
    assert "595 × 842 pt (210 × 297 mm) · rotated by 90° · smallest text 5.8 pt" in text
    assert "0 × 0 pt" not in text


def test_text_and_ocr_text_stand_beside_the_picture_under_their_own_headings() -> None:
    document = render_report(inspection([page(1, text="레이어\n둘째 줄", ocr_text="그림 속 글")]), {1: jpeg()})
    blocks = [data for tag, data in read(document).text if tag == "pre"]
    assert blocks == ["레이어\n둘째 줄", "그림 속 글"]
    assert "Text (text layer)" in words(document)
    assert "Read by OCR where the text layer has nothing" in words(document)


def test_lines_carry_the_numbers_of_their_boxes() -> None:
    lines = [{"text": "첫째", "source": "text_layer"}, {"text": "둘째", "source": "ocr"}]
    reader = read(render_report(inspection([page(1, lines=lines)]), {}))
    items = [attrs for tag, attrs in reader.tags if tag == "li" and "value" in attrs]
    assert [(item["value"], item["class"]) for item in items] == [("1", "text_layer"), ("2", "ocr")]
    assert [data for tag, data in reader.text if tag == "li" and data in ("첫째", "둘째")] == ["첫째", "둘째"]
    assert not any(tag == "pre" for tag, _ in reader.tags)


def test_page_without_text_says_so_and_does_not_call_unread_ink_empty() -> None:
    empty = words(render_report(inspection([page(1, source="none", text="")]), {}))
    assert "No text was found on this page." in empty
    unread = words(render_report(inspection([page(1, source="none", text="", undetected_ink=3)]), {}))
    assert "No text was found" not in unread
    assert "Something was seen here, but nothing could be read." in unread


def test_pictures_are_inlined_whole_and_described() -> None:
    picture = jpeg()
    images = [attrs for tag, attrs in read(render_report(inspection([page(1)]), {1: picture})).tags if tag == "img"]
    assert len(images) == 1
    source = images[0]["src"] or ""
    assert source.startswith("data:image/jpeg;base64,")
    assert base64.b64decode(source.split(",", 1)[1], validate=True) == picture
    assert "Page 1" in (images[0]["alt"] or "")


def test_pictures_past_the_cap_are_left_out_in_words() -> None:
    each = jpeg() + b"\0" * (MAX_PICTURE_BYTES // 4)
    document = render_report(inspection([page(number) for number in range(1, 7)]), dict.fromkeys(range(1, 7), each))
    assert document.count("data:image/jpeg") == 3
    assert document.count("Picture left out to keep this file small") == 3
    assert "overlay of page 6" in document


def test_bytes_that_are_no_jpeg_are_never_inlined() -> None:
    document = render_report(inspection([page(1)]), {1: b"<svg onload=alert(1)>"})
    assert "<img" not in document
    assert "not a JPEG" in document


def test_endless_text_is_cut_and_the_cut_is_counted() -> None:
    document = render_report(inspection([page(1, text="가" * (MAX_TEXT_CHARACTERS + 1234))]), {})
    assert "1,234 more characters are left out here" in document
    lines = [{"text": "가" * 1000, "source": "ocr"}] * 150
    assert "50 more lines are left out here" in render_report(inspection([page(1, lines=lines)]), {})


def test_five_hundred_pages_stay_one_file_of_bounded_size() -> None:
    pages = [page(number, text="보험 " * 600) for number in range(1, 501)]
    picture = jpeg() + b"\0" * 200_000
    document = render_report(inspection(pages), dict.fromkeys(range(1, 501), picture))
    assert document.count('id="page-') == 500
    assert len(document) < MAX_PICTURE_BYTES * 4 / 3 + 2_000_000


def hostile_inspection(text: str) -> dict[str, Any]:
    lines = [{"text": text, "source": "ocr"}, {"text": text, "source": text}]
    pages = [
        page(1, text=text, ocr_text=text, notes=[text]),
        page(2, lines=lines),
        lost_page(3, "failed", text),
        page(4, status=text, source=text, reason=text),
    ]
    return inspection(pages) | {"source_name": text, "created_at": text, "engine": text}


def test_hostile_text_stays_text_everywhere() -> None:
    document = render_report(hostile_inspection(HOSTILE), {1: jpeg()})
    assert "<script" not in document and "<img src=x" not in document
    assert [data for tag, data in read(document).text if tag == "pre"] == [HOSTILE, HOSTILE, "4쪽의 글"]
    assert [data for tag, data in read(document).text if tag == "h1"] == [HOSTILE]


def test_only_known_tags_and_attributes_and_no_address_outside_the_file() -> None:
    for tag, attributes in read(render_report(hostile_inspection(HOSTILE), {1: jpeg()})).tags:
        assert tag in ALLOWED_TAGS
        assert set(attributes) <= ALLOWED_ATTRIBUTES
        assert (attributes.get("href") or "#").startswith("#")
        assert (attributes.get("src") or "data:image/jpeg;base64,").startswith("data:image/jpeg;base64,")


@given(st.text())
def test_no_text_changes_the_structure(text: str) -> None:
    plain, given_text = (render_report(hostile_inspection(value), {}) for value in ("x", "x" + text))
    assert [tag for tag, _ in read(given_text).tags] == [tag for tag, _ in read(plain).tags]
    given_text.encode("utf-8")


@pytest.mark.parametrize("bad", ["\ud800", "\x00", "\x1b[31m", "\u202egnp.exe", "\ufffe", "\x85"])
def test_what_is_invisible_or_cannot_be_encoded_is_shown_as_a_replacement(bad: str) -> None:
    document = render_report(hostile_inspection("a" + bad + "b"), {})
    assert bad[0] not in document
    assert "a\ufffd" in document
    document.encode("utf-8")


def test_policy_allows_the_one_style_sheet_and_inlined_pictures_and_nothing_else() -> None:
    document = render_report(inspection([page(1)]), {})
    reader = read(document)
    policy = next(
        attrs["content"] for tag, attrs in reader.tags if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    style = document.split("<style>", 1)[1].split("</style>", 1)[0]
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    assert policy is not None
    assert dict(part.strip().split(" ", 1) for part in policy.split(";")) == {
        "default-src": "'none'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "style-src": f"'sha256-{digest}'",
    }
    assert not any(address in style for address in ("url(", "@import", "http:", "https:"))


def test_names_its_languages_and_keeps_headings_in_order() -> None:
    reader = read(render_report(inspection([page(1), page(2)]), {}))
    tags = reader.tags
    assert next(attrs for tag, attrs in tags if tag == "html")["lang"] == "en"
    assert [tag for tag, _ in tags if re.fullmatch("h[1-6]", tag)] == ["h1", "h2", "h3", "h2", "h3"]
    assert all(attrs.get("scope") == "col" for tag, attrs in tags if tag == "th")
    assert next(attrs for tag, attrs in tags if tag == "pre")["lang"] == "ko"


def test_legend_explains_every_kind_of_box_that_overlays_draw() -> None:
    text = words(render_report(inspection([page(1)]), {}))
    assert all(style.words in text for style in STYLES.values())
    assert set(report.MARK_WORDS) == {style.shape for style in STYLES.values()}
    for kind in ("text_layer", "ocr"):
        assert "#{:02x}{:02x}{:02x}".format(*STYLES[kind].line) in CSS
    assert "#{:02x}{:02x}{:02x}".format(*STYLES["ink"].tag) in CSS


def region(number: int, label: str = "coin", height: float | None = None) -> dict[str, Any]:
    return {"number": number, "label": label, "confidence": 0.925, "text_height_pt": height}


def test_regions_are_listed_with_the_numbers_of_the_picture() -> None:
    found = [region(3, HOSTILE), region(4, "인감", 6.04)]
    reader = read(render_report(inspection([page(1, regions=found, regions_reason="")]), {}))
    listed = [attrs.get("value") for tag, attrs in reader.tags if tag == "li" and attrs.get("class") == "region"]
    assert listed == ["3", "4"]
    text = " ".join(part for _, part in reader.text)
    assert f"{HOSTILE} · 92%" in text
    assert "인감 · 92% · text 6.0 pt" in text


def test_none_found_is_only_said_where_all_of_the_page_was_looked_at() -> None:
    none_found, may_be = "None of the labels was found", "Regions may be missing here."
    looked = words(render_report(inspection([page(1, regions=[], regions_reason="")]), {}))
    assert none_found in looked
    assert may_be not in looked
    for found in ([], None, [region(1)]):
        partly = words(render_report(inspection([page(1, regions=found, regions_reason="1 of 2 tiles refused")]), {}))
        assert none_found not in partly
        assert may_be in partly
        assert "1 of 2 tiles refused" in partly
    unasked = words(render_report(inspection([page(1, regions=None, regions_reason="")]), {}))
    assert none_found not in unasked
    assert may_be not in unasked


def test_more_regions_than_anybody_reads_are_counted() -> None:
    many = [region(number) for number in range(1, MAX_REGIONS + 8)]
    assert "7 more regions are left out here" in words(render_report(inspection([page(1, regions=many)]), {}))
