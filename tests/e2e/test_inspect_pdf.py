"""inspect_pdf on a real worker: every page accounted for, whatever is in it."""

from __future__ import annotations

import asyncio
import difflib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from fpdf import FPDF
from PIL import Image, ImageDraw
from tests.conftest import RunningWorker, serving
from tests.e2e.tools import Agent, ToolFailure
from tests.fakes.documents import bloating_page, crashing_page, document, good_page, hanging_page
from tests.fakes.raw_pdf import one_page, show, stream

from sam2_mcp_worker.demo.fonts import find_fonts, load_font
from sam2_mcp_worker.demo.leaflet import LeafletTruth, make_leaflet
from sam2_mcp_worker.settings import Settings

SMALL_RESULT_CHARS = 4000


@pytest.fixture(scope="module")
def leaflet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LeafletTruth]:
    path = tmp_path_factory.mktemp("leaflet") / "leaflet.pdf"
    return path, make_leaflet(path)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    """A worker with short patience, little memory and small results."""
    yield from serving(
        Settings(
            port=0,
            data_dir=tmp_path_factory.mktemp("strict"),
            # The page that crashes its decoder fills its memory first, which takes 2.4 s of a core; the one that hangs
            # draws for 20 s and needs 0.9 GB.
            step_timeout_s=8,
            decoder_memory_bytes=1024 * 2**20,
            result_max_chars=SMALL_RESULT_CHARS,
        )
    )


def squeezed(text: str) -> str:
    return "".join(text.split())


def likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, squeezed(one), squeezed(other), autojunk=False).ratio()


@pytest.mark.timeout(180)
async def test_every_page_of_the_leaflet_is_read_from_the_right_source(
    worker: RunningWorker, leaflet: tuple[Path, LeafletTruth]
) -> None:
    path, truth = leaflet
    agent = Agent(worker)
    results = await agent.follow("inspect_pdf", source=await agent.upload(path))
    pages = {page["page_number"]: page for result in results for page in result["pages"]}
    assert results[-1]["coverage"] == {"total": 9, "done": 9, "failed": [], "unreached": []}
    assert sorted(pages) == list(range(1, 10))
    for expected in truth.pages:
        page = pages[expected.page_number]
        assert page["source"] == ("ocr" if expected.kind == "image" else "text_layer")
        everything = page["text"] + page.get("ocr_text", "")
        for line in expected.lines:
            found = max(likeness(line.text, seen) for seen in everything.split("\n"))
            assert found >= 0.5 or squeezed(line.text) in squeezed(everything), line.text
        assert page["smallest_text_pt"] == pytest.approx(expected.smallest_size_pt, abs=1.0)


async def test_the_overlay_and_the_report_are_there_for_people(
    worker: RunningWorker, leaflet: tuple[Path, LeafletTruth]
) -> None:
    path, _ = leaflet
    agent = Agent(worker)
    result = (await agent.follow("inspect_pdf", source=await agent.upload(path)))[-1]
    async with httpx.AsyncClient(base_url=worker.base_url, headers=worker.headers) as client:
        picture = await client.get(f"/artifacts/{result['pages'][0]['overlay'].removeprefix('artifact://')}")
        report = await client.get(f"/artifacts/{result['report'].removeprefix('artifact://')}")
    with Image.open(io.BytesIO(picture.content)) as overlay:
        assert overlay.format == "JPEG"
        assert 500 < overlay.width <= 1600
    assert "leaflet.pdf" in report.text
    assert report.text.count("data:image/jpeg") == 9


async def test_boxes_are_points_from_the_top_left(worker: RunningWorker, tmp_path: Path) -> None:
    path = tmp_path / "one.pdf"
    path.write_bytes(one_page(show("Hello box", 100, 200, 20)))
    agent = Agent(worker)
    result = await agent.call("inspect_pdf", source=await agent.upload(path), detail="detailed")
    (line,) = result["pages"][0]["lines"]
    x0, y0, _, y1 = line["box_xyxy_pt"]
    # The page is 300 pt high and the baseline at 200 pt from below, so the text stands above y = 100 from the top.
    assert x0 == pytest.approx(100, abs=2)
    assert 75 <= y0 < y1 <= 106
    assert line["size_pt"] == pytest.approx(20)
    assert "text" not in result["pages"][0]


async def test_pages_that_crash_hang_or_bloat_their_decoder_fail_by_name_and_the_others_are_right(
    strict: RunningWorker, tmp_path: Path
) -> None:
    path = tmp_path / "hostile.pdf"
    path.write_bytes(
        document(
            [
                good_page("page one"),
                crashing_page(),
                good_page("page three"),
                hanging_page(),
                bloating_page(),
                good_page("six"),
            ]
        )
    )
    agent = Agent(strict)
    results = await agent.follow("inspect_pdf", source=await agent.upload(path))
    pages = {page["page_number"]: page for result in results for page in result["pages"]}
    assert [pages[n]["status"] for n in (1, 3, 6)] == ["done"] * 3
    assert [squeezed(pages[n]["text"]) for n in (1, 3, 6)] == ["pageone", "pagethree", "six"]
    assert pages[2]["status"] == "failed"
    assert "decoder_crashed" in pages[2]["reason"] or "out_of_memory" in pages[2]["reason"]
    assert pages[4]["status"] == "failed"
    assert "decoder_timeout" in pages[4]["reason"]
    assert results[-1]["coverage"]["failed"] == sorted(n for n, page in pages.items() if page["status"] == "failed")
    assert sorted(pages) == [1, 2, 3, 4, 5, 6]
    # The worker is as well as before.
    assert (await agent.call("get_status"))["ready"]


LYING_CMAP = b"""/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /L def
1 begincodespacerange <00> <FF> endcodespacerange
1 beginbfrange <20> <7E> <AC00> endbfrange
endcmap end end"""


async def test_a_text_layer_that_lies_is_found_out_and_not_used(worker: RunningWorker, tmp_path: Path) -> None:
    """The font maps every letter to a Hangul syllable; the page shows Latin words and figures."""
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 12 0 R >>"
    page = b"/MediaBox [0 0 400 300] /Resources << /Font << /F1 11 0 R >> >>"
    content = show("Insurance premium 12345 won", 30, 200, 20) + show("Contract period 2026 to 2046", 30, 150, 20)
    path = tmp_path / "lie.pdf"
    path.write_bytes(one_page(content, page, {11: font, 12: stream(LYING_CMAP)}))
    agent = Agent(worker)
    (result,) = await agent.follow("inspect_pdf", source=await agent.upload(path))
    page_result = result["pages"][0]
    assert page_result["source"] == "ocr"
    assert "12345" in page_result["text"]
    assert "2026" in page_result["text"]
    assert any("does not say what is printed" in note for note in page_result["notes"])


async def test_a_picture_of_text_beside_a_text_layer_is_read_too(
    worker: RunningWorker, leaflet: tuple[Path, LeafletTruth]
) -> None:
    path, truth = leaflet
    agent = Agent(worker)
    results = await agent.follow("inspect_pdf", source=await agent.upload(path))
    pages = {page["page_number"]: page for result in results for page in result["pages"]}
    for expected in truth.pages:
        drawn = [line.text for line in expected.lines if not line.in_text_layer]
        if expected.kind == "mixed":
            beside = pages[expected.page_number]["ocr_text"]
            assert all(max(likeness(text, seen) for seen in beside.split("\n")) > 0.6 for text in drawn)


async def test_a_layer_line_under_a_picture_that_says_something_else_is_no_evidence(
    worker: RunningWorker, tmp_path: Path
) -> None:
    """The fraud case: the claim is in the text layer, and people see the disclaimer printed over it."""
    fonts = find_fonts()
    patch = Image.new("RGB", (700, 60), "white")
    font = load_font(fonts["body"], 36)
    ImageDraw.Draw(patch).text((10, 8), "원금 손실이 발생할 수 있음", font=font, fill="black")
    patch.save(tmp_path / "patch.png")
    pdf = FPDF(unit="pt", format=(500, 400))
    pdf.add_font("Nanum", fname=str(fonts["body"]))
    pdf.add_page()
    pdf.set_font("Nanum", size=20)
    pdf.text(40, 60, "상품 안내와 유의 사항을 확인하세요")
    pdf.text(40, 120, "보험료와 보장 내용은 약관을 따릅니다")
    pdf.text(40, 200, "최저보증이율 연복리 확정")
    pdf.image(str(tmp_path / "patch.png"), 36, 178, 350, 30)
    path = tmp_path / "covered.pdf"
    path.write_bytes(bytes(pdf.output()))
    agent = Agent(worker)
    (result,) = await agent.follow("inspect_pdf", source=await agent.upload(path))
    page = result["pages"][0]
    assert "원금손실이발생할수있음" in squeezed(page["ocr_text"])
    assert "연복리" not in page["text"]
    assert "유의사항" in squeezed(page["text"])
    assert any("printed over" in note for note in page["notes"])


async def test_a_password_is_asked_for_by_name_and_opens_the_file(worker: RunningWorker, tmp_path: Path) -> None:
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("Helvetica", size=24)
    pdf.cell(text="behind the password")
    pdf.set_encryption(owner_password="owner", user_password="s3cret")
    path = tmp_path / "locked.pdf"
    path.write_bytes(bytes(pdf.output()))
    agent = Agent(worker)
    handle = await agent.upload(path)
    with pytest.raises(ToolFailure, match=r"^\[password_required\].*password"):
        await agent.call("inspect_pdf", source=handle)
    with pytest.raises(ToolFailure, match=r"^\[wrong_password\]"):
        await agent.call("inspect_pdf", source=handle, password="guess")
    opened = await agent.call("inspect_pdf", source=handle, password="s3cret")
    assert squeezed(opened["pages"][0]["text"]) == "behindthepassword"
    with pytest.raises(ToolFailure, match=r"^\[password_required\]"):
        await agent.call("inspect_pdf", source=handle)


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"%PDF-1.7\n", "pdf_damaged"), (b"not a pdf at all", "not_a_pdf"), (b"%PDF-1.4\n" + b"\0" * 5000, "pdf_damaged")],
)
async def test_what_is_no_readable_pdf_fails_by_name(
    worker: RunningWorker, tmp_path: Path, data: bytes, code: str
) -> None:
    path = tmp_path / "bad.pdf"
    path.write_bytes(data)
    agent = Agent(worker)
    with pytest.raises(ToolFailure, match=rf"^\[{code}\]"):
        await agent.call("inspect_pdf", source=await agent.upload(path))


async def test_a_page_range_reads_just_these_pages(worker: RunningWorker, tmp_path: Path) -> None:
    path = tmp_path / "five.pdf"
    path.write_bytes(document([good_page(f"page {n}") for n in range(1, 6)]))
    agent = Agent(worker)
    handle = await agent.upload(path)
    result = await agent.call("inspect_pdf", source=handle, pages="2,4-5")
    assert [page["page_number"] for page in result["pages"]] == [2, 4, 5]
    assert result["coverage"]["total"] == 3
    assert result["page_count"] == 5
    for bad in ("0", "6", "3-1", "a", "1-99"):
        with pytest.raises(ToolFailure, match=r"^\[page_out_of_range\].*1-5"):
            await agent.call("inspect_pdf", source=handle, pages=bad)


async def test_a_long_document_comes_in_results_that_fit_and_no_page_twice(
    strict: RunningWorker, tmp_path: Path
) -> None:
    def content(page: int) -> bytes:
        rows = 250 if page == 3 else 24  # page 3 alone is longer than a result
        return b"".join(
            show(f"page {page} row {row} with some words in it", 10, 295 - row % 58 * 5, 4) for row in range(rows)
        )

    path = tmp_path / "long.pdf"
    path.write_bytes(document([content(n) for n in range(1, 9)]))
    agent = Agent(strict)
    results = await agent.follow("inspect_pdf", source=await agent.upload(path))
    assert len(results) > 3
    whole = [page["page_number"] for result in results for page in result["pages"] if not page.get("continues")]
    assert sorted(whole) == list(range(1, 9))
    for result in results:
        assert len(json.dumps(result, ensure_ascii=False, separators=(",", ":"))) <= SMALL_RESULT_CHARS + 1000
    parts = [page for result in results for page in result["pages"] if page["page_number"] == 3]
    assert len(parts) > 1
    assert [part.get("continued", False) for part in parts] == [False] + [True] * (len(parts) - 1)


async def test_cursors_and_arguments_that_do_not_fit_say_what_to_do(worker: RunningWorker, tmp_path: Path) -> None:
    path = tmp_path / "one.pdf"
    path.write_bytes(document([good_page("x y z")]))
    agent = Agent(worker)
    handle = await agent.upload(path)
    for wrong, code in [
        ({"cursor": "nonsense"}, "cursor_invalid"),
        ({"pagse": "1"}, "unknown_argument"),
        ({"detail": "everything"}, "invalid_arguments"),
        ({"pages": 7}, "invalid_arguments"),
        ({"source": "file_" + "0" * 32}, "file_unknown"),
        ({"source": "/etc/passwd"}, "source_not_allowed"),
        ({"source": ""}, "source_invalid"),
    ]:
        with pytest.raises(ToolFailure, match=rf"^\[{code}\]") as caught:
            await agent.call("inspect_pdf", **({"source": handle} | wrong))
        assert len(str(caught.value)) <= 500
        assert "pydantic" not in str(caught.value)
    with pytest.raises(ToolFailure, match=r"^\[unknown_tool\].*inspect_pdf"):
        await agent.call("inspect_pfd")


async def test_two_hundred_parallel_calls_on_one_file_all_get_the_same_right_result(
    worker: RunningWorker, tmp_path: Path
) -> None:
    path = tmp_path / "many.pdf"
    path.write_bytes(document([good_page(f"page number {n}") for n in range(1, 13)]))
    agent = Agent(worker)
    handle = await agent.upload(path)
    limiter = anyio.CapacityLimiter(50)  # connections; the calls overlap all the same

    async def one(number: int) -> tuple[int, dict[str, Any]]:
        page = number % 12 + 1
        async with limiter:
            return page, await agent.call("inspect_pdf", source=handle, **({"pages": str(page)} if number % 2 else {}))

    for page, result in await asyncio.gather(*(one(number) for number in range(200))):
        numbers = [found["page_number"] for found in result["pages"]]
        assert numbers in ([page], list(range(1, 13)))
        for found in result["pages"]:
            assert squeezed(found["text"]) == f"pagenumber{found['page_number']}"
    assert not list(worker.services.work_root.iterdir()), "work directories were left behind"


async def test_a_call_that_is_dropped_stops_its_work(strict: RunningWorker, tmp_path: Path) -> None:
    path = tmp_path / "hang.pdf"
    path.write_bytes(document([hanging_page()] * 6))
    agent = Agent(strict)
    handle = await agent.upload(path)
    call = asyncio.create_task(agent.call("inspect_pdf", source=handle))
    with anyio.fail_after(20):
        while strict.services.jobs.running == 0:
            await anyio.sleep(0.01)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    with anyio.fail_after(10):
        while strict.services.jobs.running or strict.services.decoders.stats().busy:
            await anyio.sleep(0.01)


async def test_what_was_read_once_is_served_after_a_restart_without_reading_again(tmp_path: Path) -> None:
    path = tmp_path / "three.pdf"
    path.write_bytes(document([good_page(f"page number {n}") for n in range(1, 4)]))
    results = []
    for _ in range(2):
        with_worker = serving(Settings(port=0, data_dir=tmp_path / "data", ocr_processes=1))
        worker = next(with_worker)
        agent = Agent(worker)
        results.append(await agent.call("inspect_pdf", source=await agent.upload(path)))
        tasks = sum(child.tasks for child in worker.services.ocr_pool.stats().children)
        await asyncio.to_thread(next, with_worker, None)
    assert tasks == 0
    assert results[0]["pages"] == results[1]["pages"]
