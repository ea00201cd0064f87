"""redact_media on PDFs of a real worker: phrases in text, pictures and over lines, boxes, and what is said of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from fpdf import FPDF
from PIL import Image, ImageDraw
from tests.conftest import RunningWorker
from tests.e2e.redacted import fetch_redacted, hurried_worker
from tests.e2e.tools import Agent, ToolFailure
from tests.fakes.pdf_desk import Desk, kept_line, show

from sam2_mcp_worker.demo.fonts import find_fonts, load_font
from sam2_mcp_worker.media.redact_words import found_in_bytes, needles

SECRET = "홍길동"
ROWS = ["고객명: 홍길동 님", "계좌번호 110-234-567890", "보험료는 매월 납입합니다"]


def picture(path: Path, rows: list[str], size: tuple[int, int] = (1200, 400)) -> Path:
    image = Image.new("RGB", size, "white")
    for row, text in enumerate(rows):
        font = load_font(find_fonts()["body"], 40)
        ImageDraw.Draw(image).text((40, 30 + 120 * row), text, font=font, fill="black")
    image.save(path)
    return path


class Document:
    """A PDF of pages with lines of text and pictures."""

    def __init__(self) -> None:
        self.pdf = FPDF(unit="pt", format=(595, 842))
        self.pdf.add_font("N", fname=str(find_fonts()["body"]))

    def page(self, *lines: str, image: Path | None = None) -> Document:
        self.pdf.add_page()
        self.pdf.set_font("N", size=14)
        for row, text in enumerate(lines):
            self.pdf.text(60, 100 + 40 * row, text)
        if image is not None:
            self.pdf.image(str(image), 50, 400, 500)
        return self

    def save(self, path: Path) -> Path:
        self.pdf.output(str(path))
        return path


async def fetched(worker: RunningWorker, result: dict[str, Any], path: Path) -> Path:
    return await fetch_redacted(worker, result, path, "application/pdf")


def extracted(path: Path) -> list[str]:
    document = pypdfium2.PdfDocument(str(path))
    try:
        texts = []
        for page in document:
            text_page = page.get_textpage()
            texts.append("".join(text_page.get_text_bounded().split()))
            text_page.close()
            page.close()
        return texts
    finally:
        document.close()


async def read(agent: Agent, path: Path) -> list[str]:
    """All text of each page, text layer and OCR, without spaces."""
    results = await agent.follow("inspect_pdf", source=await agent.upload(path))
    pages = [page for result in results for page in result["pages"]]
    return ["".join(((page.get("text") or "") + (page.get("ocr_text") or "")).split()) for page in pages]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The secret in a text page, in a picture, and in both on one page."""
    folder = tmp_path_factory.mktemp("mixed")
    image = picture(folder / "a.png", ROWS)
    document = Document()
    document.page("보험 증권 안내", "피보험자 홍길동 귀하 안녕하세요", "보험료는 매월 납입합니다")
    document.page(image=image).page("마지막 쪽의 홍길동", image=image)
    return document.save(folder / "mixed.pdf")


async def test_a_phrase_is_gone_from_text_and_pictures_and_the_rest_stays(
    worker: RunningWorker, mixed: Path, tmp_path: Path
) -> None:
    agent = Agent(worker)
    result = await agent.call("redact_media", source=await agent.upload(mixed), phrases=[SECRET])
    assert result["status"] == "done"
    places = sorted((entry["page_number"], entry["source"]) for entry in result["covered"])
    assert places == [(1, "text_layer"), (2, "ocr"), (3, "ocr"), (3, "text_layer")]
    assert any("OCR of the redacted pages" in text for text in result["verified"])
    out = await fetched(worker, result, tmp_path / "out.pdf")
    assert not found_in_bytes(out.read_bytes(), needles([SECRET]))
    assert extracted(out)[0] == "보험증권안내피보험자귀하안녕하세요보험료는매월납입합니다"
    pages = await read(agent, out)
    assert not any(SECRET in page for page in pages)
    assert "매월납입합니다" in pages[1]
    assert "234-567890" in pages[2]
    assert result["name"] == "mixed-redacted.pdf"


async def test_boxes_clear_text_and_picture_under_them(worker: RunningWorker, mixed: Path, tmp_path: Path) -> None:
    agent = Agent(worker)
    boxes = [
        {"page_number": 1, "box_xyxy_pt": [50, 120, 400, 150]},
        {"page_number": 2, "box_xyxy_pt": [50, 400, 550, 450]},
    ]
    result = await agent.call("redact_media", source=await agent.upload(mixed), regions=boxes)
    assert result["status"] == "done"
    assert [(entry["region"], entry["page_number"]) for entry in result["covered"]] == [(1, 1), (2, 2)]
    assert any("OCR reads nothing in the regions" in text for text in result["verified"])
    out = await fetched(worker, result, tmp_path / "out.pdf")
    assert SECRET not in extracted(out)[0]
    pages = await read(agent, out)
    assert SECRET not in pages[1]
    assert "234-567890" in pages[1]
    assert pages[2].count(SECRET) == 2


async def test_a_phrase_that_wraps_is_gone_from_both_lines(worker: RunningWorker, tmp_path: Path) -> None:
    path = Document().page("주소 서울시 종로구", "세종대로 1번지 2층", "보험료 안내").save(tmp_path / "a.pdf")
    agent = Agent(worker)
    phrase = "종로구 세종대로 1번지"
    result = await agent.call("redact_media", source=await agent.upload(path), phrases=[phrase])
    assert result["covered_count"] == 2
    out = await fetched(worker, result, tmp_path / "out.pdf")
    assert extracted(out) == ["주소서울시2층보험료안내"]


async def test_one_letter_goes_wherever_it_stands_in_a_text_layer(worker: RunningWorker, tmp_path: Path) -> None:
    path = Document().page("김 씨의 계약", "다른 김").save(tmp_path / "a.pdf")
    agent = Agent(worker)
    result = await agent.call("redact_media", source=await agent.upload(path), phrases=["김"])
    out = await fetched(worker, result, tmp_path / "out.pdf")
    assert extracted(out) == ["씨의계약다른"]
    assert any("phrases of one character (김)" in text for text in result["not_verified"])


async def test_a_phrase_over_a_page_break_is_covered_on_both_pages(worker: RunningWorker, tmp_path: Path) -> None:
    document = (
        Document()
        .page("계약자는 홍길동 과장", "담당자 이름은 홍길동", "- 1 -")
        .page("머리글", "과장 입니다", "보험 안내")
    )
    agent = Agent(worker)
    source = await agent.upload(document.save(tmp_path / "a.pdf"))
    result = await agent.call("redact_media", source=source, phrases=["홍길동 과장"])
    assert result["status"] == "done"
    assert extracted(await fetched(worker, result, tmp_path / "out.pdf")) == ["계약자는-1-", "머리글보험안내"]


async def test_a_region_under_which_nothing_stands_is_told(worker: RunningWorker, mixed: Path) -> None:
    agent = Agent(worker)
    regions = [{"page_number": 1, "box_xyxy_pt": [500, 800, 501, 801]}]
    result = await agent.call("redact_media", source=await agent.upload(mixed), regions=regions)
    assert any("nothing stood under the regions of pages [1]" in text for text in result["notes"])


async def test_a_phrase_that_is_not_there_is_named_with_the_closest_reading(worker: RunningWorker, mixed: Path) -> None:
    agent = Agent(worker)
    result = await agent.call("redact_media", source=await agent.upload(mixed), phrases=["보험 증권 안네", SECRET])
    assert result["status"] == "incomplete"
    (missed,) = result["not_found"]
    assert missed["phrase"] == "보험 증권 안네"
    assert missed["closest"]["text"] == "보험 증권 안내"
    assert missed["closest"]["page_number"] == 1
    nothing = await agent.call("redact_media", source=await agent.upload(mixed), phrases=["전혀 없는 말씀"])
    assert nothing["status"] == "nothing_covered"
    assert "redacted" not in nothing


async def test_a_page_that_cannot_be_read_makes_the_result_incomplete(worker: RunningWorker, tmp_path: Path) -> None:
    image = Image.new("RGB", (700, 200), "white")
    pen, place = ImageDraw.Draw(image), random.Random(5)
    for x in range(60, 560, 12):  # as dense as print, and no letters
        points = [(x + place.randrange(-8, 18), 100 + place.randrange(-18, 18)) for _ in range(5)]
        pen.line(points, fill="black", width=3)
    image.save(tmp_path / "scribble.png")
    document = Document().page("고객 홍길동").page("둘째 쪽", image=tmp_path / "scribble.png")
    agent = Agent(worker)
    source = await agent.upload(document.save(tmp_path / "a.pdf"))
    (seen,) = await agent.follow("inspect_pdf", source=source)
    assert seen["pages"][1]["undetected_ink"] > 0
    result = await agent.call("redact_media", source=source, phrases=[SECRET])
    assert result["status"] == "incomplete"
    assert "nobody could read" in result["incomplete_because"][0]
    assert "redacted" in result


async def test_a_document_with_a_password_needs_it_and_comes_out_without(worker: RunningWorker, tmp_path: Path) -> None:
    document = Document().page("고객 홍길동 님", "다른 줄")
    document.pdf.set_encryption(owner_password="owner", user_password="open")
    path = document.save(tmp_path / "a.pdf")
    agent = Agent(worker)
    source = await agent.upload(path)
    with pytest.raises(ToolFailure, match=r"^\[password_required\]"):
        await agent.call("redact_media", source=source, phrases=[SECRET])
    with pytest.raises(ToolFailure, match=r"^\[wrong_password\]"):
        await agent.call("redact_media", source=source, phrases=[SECRET], password="other")
    result = await agent.call("redact_media", source=source, phrases=[SECRET], password="open")
    assert any("password" in note for note in result["notes"])
    assert extracted(await fetched(worker, result, tmp_path / "out.pdf")) == ["고객님다른줄"]


async def test_metadata_goes_and_is_said_to(worker: RunningWorker, tmp_path: Path) -> None:
    document = Document().page("고객 안내", "계약 조건")
    document.pdf.set_title("홍길동 계약")
    agent = Agent(worker)
    source = await agent.upload(document.save(tmp_path / "a.pdf"))
    result = await agent.call(
        "redact_media", source=source, regions=[{"page_number": 1, "box_xyxy_pt": [50, 80, 200, 110]}]
    )
    assert any("metadata" in note for note in result["notes"])
    out = await fetched(worker, result, tmp_path / "out.pdf")
    assert not found_in_bytes(out.read_bytes(), needles([SECRET]))


async def test_annotations_attachments_and_fields_are_counted(worker: RunningWorker, tmp_path: Path) -> None:
    desk = Desk()
    desk.page(show("Zanzibar") + kept_line())
    desk.pdf.attachments["note.txt"] = b"Zanzibar"
    (tmp_path / "a.pdf").write_bytes(desk.save())
    agent = Agent(worker)
    result = await agent.call("redact_media", source=await agent.upload(tmp_path / "a.pdf"), phrases=["Zanzibar"])
    assert any("attachments" in note for note in result["notes"])
    out = await fetched(worker, result, tmp_path / "out.pdf")
    assert not found_in_bytes(out.read_bytes(), needles(["Zanzibar"]))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"regions": [{"page_number": 9, "box_xyxy_pt": [0, 0, 9, 9]}]}, "page_out_of_range"),
        ({"regions": [{"page_number": 1, "box_xyxy_pt": [900, 900, 950, 950]}]}, "region_outside_page"),
        ({"regions": [{"box_xyxy_pt": [0, 0, 9, 9]}]}, "region_invalid"),
        ({"regions": [{"page_number": 1, "box_xyxy_px": [0, 0, 9, 9]}]}, "region_invalid"),
        ({"regions": [{"handle": "art_" + "C" * 22}]}, "region_invalid"),
        ({"phrases": [SECRET], "method": "blur"}, "not_for_this_kind"),
        ({"phrases": [SECRET], "audio": "mute"}, "not_for_this_kind"),
    ],
)
async def test_wrong_arguments_are_refused_by_name(
    worker: RunningWorker, mixed: Path, arguments: dict[str, Any], code: str
) -> None:
    agent = Agent(worker)
    source = await agent.upload(mixed)
    with pytest.raises(ToolFailure, match=rf"^\[{code}\]"):
        await agent.call("redact_media", source=source, **arguments)


async def test_a_damaged_document_fails_by_name_and_leaves_no_file(
    worker: RunningWorker, mixed: Path, tmp_path: Path
) -> None:
    (tmp_path / "cut.pdf").write_bytes(b"%PDF-1.7\n" + bytes(500))
    agent = Agent(worker)
    source = await agent.upload(tmp_path / "cut.pdf")
    before = {path.name for path in worker.services.artifacts.entries()}
    with pytest.raises(ToolFailure, match=r"^\[(pdf_damaged|not_a_pdf)\]"):
        await agent.call("redact_media", source=source, phrases=[SECRET])
    assert {path.name for path in worker.services.artifacts.entries()} == before


async def test_redactions_at_once_do_not_mix(worker: RunningWorker, tmp_path: Path) -> None:
    agent = Agent(worker)

    async def one(number: int) -> None:
        name = f"제{number}호 계약자"
        path = Document().page(f"{name} 앞", f"남는 말 {number}").save(tmp_path / f"{number}.pdf")
        result = await agent.call("redact_media", source=await agent.upload(path), phrases=[name])
        assert extracted(await fetched(worker, result, tmp_path / f"{number}-out.pdf")) == [f"앞남는말{number}"]

    await asyncio.gather(*(one(number) for number in range(11, 15)))


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    yield from hurried_worker(tmp_path_factory.mktemp("hurried"))


async def test_a_document_that_takes_longer_than_a_call_is_finished_over_the_cursor(
    hurried: RunningWorker, mixed: Path, tmp_path: Path
) -> None:
    agent = Agent(hurried)
    source = await agent.upload(mixed)
    results = await agent.follow("redact_media", source=source, phrases=[SECRET])
    assert len(results) > 1
    assert all(result["status"] == "running" and result["doing"] for result in results[:-1])
    assert results[-1]["status"] == "done"
    assert SECRET not in extracted(await fetched(hurried, results[-1], tmp_path / "out.pdf"))[0]
    with pytest.raises(ToolFailure, match=r"^\[cursor_invalid\]"):
        await agent.call("redact_media", source=source, phrases=["다른 말"], cursor=results[0]["cursor"])
