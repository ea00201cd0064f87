"""check_figures on a real worker: real files through the wire, and what becomes of those that cannot be read."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from fpdf import FPDF
from fpdf.fonts import FontFace
from PIL import Image, ImageDraw
from tests.bench.checks.figure_pairs import pairs
from tests.conftest import RunningWorker
from tests.e2e.tools import Agent, ToolFailure
from tests.fakes.speech_sounds import silence, write_sound
from tests.fakes.workbooks import OLE2, simple

from sam2_mcp_worker.checks.tables import Table
from sam2_mcp_worker.deadline import Deadline, deadline_scope
from sam2_mcp_worker.demo.fonts import find_fonts, load_font
from sam2_mcp_worker.pipelines.check_figures import Request, check_figures

Result = TypeVar("Result")
TOOL = "check_figures"
FILED = [["담보", "가입금액", "환급률"], ["암진단비", "3,000만원", "95.5%"], ["상해사망", "1억원", "80.0%"]]
ADVERTISED = "암진단비 5,000만원\n상해사망 1억원\n벌금 비용 200만원\n상담 1588-0000"


@pytest.fixture
def agent(worker: RunningWorker) -> Agent:
    return Agent(worker)


def separated(rows: list[list[str]], encoding: str = "utf-8", separator: str = ",") -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=separator).writerows(rows)
    return text.getvalue().encode(encoding)


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def states(result: dict[str, Any]) -> dict[str, str]:
    return {figure["text"]: figure["state"] for figure in result["figures"]}


def inside(worker: RunningWorker, work: Coroutine[Any, Any, Result]) -> Result:
    """Run something on the worker's own loop."""
    return asyncio.run_coroutine_threadsafe(work, worker.loop).result(60)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("utf-8.csv", separated(FILED)),
        ("office.csv", separated(FILED, "cp949")),
        ("unicode.tsv", separated(FILED, "utf-16", "\t")),
        ("semicolons.csv", separated(FILED, "utf-8-sig", ";")),
    ],
    ids=["utf-8", "cp949", "utf-16 and tabs", "byte order mark and semicolons"],
)
async def test_figures_are_held_against_a_table_of_any_encoding(
    agent: Agent, tmp_path: Path, name: str, data: bytes
) -> None:
    handle = await agent.upload(written(tmp_path / name, data))
    result = await agent.call(TOOL, text=ADVERTISED, evidence=[handle])
    assert states(result) == {"5,000만원": "mismatch", "1억원": "match", "200만원": "cannot_compare"}
    assert result["counts"] == {"match": 1, "mismatch": 1, "cannot_compare": 1}
    (told,) = result["evidence"]
    assert (told["file"], told["kind"], told["status"], told["tables"]) == (name, "csv", "done", 1)


async def test_a_mismatch_tells_both_values_with_their_places(agent: Agent, tmp_path: Path) -> None:
    handle = await agent.upload(simple(tmp_path / "filed.xlsx", [list(row) for row in FILED]))
    result = await agent.call(TOOL, text=ADVERTISED, evidence=[handle])
    first = result["figures"][0]
    assert (first["number"], first["state"], first["value"], first["line"]) == (1, "mismatch", "50000000", 1)
    filed = first["evidence"]
    assert (filed["file"], filed["sheet"], filed["cell"], filed["value"]) == ("filed.xlsx", "Sheet", "B2", "30000000")
    assert result["label"] in ("conditional", "reject")


async def test_without_evidence_nothing_is_wrong_and_nothing_is_approved(agent: Agent) -> None:
    result = await agent.call(TOOL, text=ADVERTISED)
    assert set(states(result).values()) == {"cannot_compare"}
    assert (result["label"], result["evidence"]) == ("none", [])
    empty = await agent.call(TOOL, text="숫자 없는 글")
    assert empty["figures"] == [] and "no number" in empty["notes"][0]


async def test_evidence_that_cannot_be_read_is_named_and_proves_nothing(agent: Agent, tmp_path: Path) -> None:
    handles = [
        await agent.upload(written(tmp_path / "old.xls", OLE2 + bytes(600) + "Workbook".encode("utf-16-le"))),
        await agent.upload(written(tmp_path / "locked.xlsx", OLE2 + "EncryptedPackage".encode("utf-16-le"))),
        await agent.upload(written(tmp_path / "cut.xlsx", b"PK\x03\x04 cut")),
        await agent.upload(written(tmp_path / "noise.bin", bytes(range(256)))),
        await agent.upload(written(tmp_path / "empty.csv", b",,\n")),
        await agent.upload(written(tmp_path / "page.html", b"<html>1")),
        await agent.upload(written(tmp_path / "cut.pdf", b"%PDF-1.7 cut")),
        await agent.upload(write_sound(tmp_path / "said.wav", silence(0.2))),
        "file_" + "0" * 32,
    ]
    filed = await agent.upload(written(tmp_path / "filed.csv", separated(FILED)))
    result = await agent.call(TOOL, text=ADVERTISED, evidence=[*handles, filed])
    codes = [one["reason"].partition("]")[0].lstrip("[") for one in result["evidence"][:-1]]
    assert codes == [
        "unsupported_file",
        "workbook_encrypted",
        "workbook_damaged",
        "not_text",
        "table_empty",
        "unsupported_file",
        "pdf_damaged",
        "evidence_unsupported",
        "file_unknown",
    ]
    assert all(one["status"] == "failed" for one in result["evidence"][:-1])
    assert states(result) == {"5,000만원": "cannot_compare", "1억원": "match", "200만원": "cannot_compare"}
    assert result["label"] == "none"
    (first,) = [figure for figure in result["figures"] if figure["text"] == "5,000만원"]
    assert "not all evidence was read" in first["reason"] and first["evidence"]["text"] == "3,000만원"


async def test_an_advertisement_is_no_evidence_of_itself(agent: Agent, tmp_path: Path) -> None:
    handle = await agent.upload(written(tmp_path / "ad.txt", ADVERTISED.encode()))
    result = await agent.call(TOOL, source=handle, evidence=[handle])
    assert set(states(result).values()) == {"cannot_compare"} and result["label"] == "none"
    assert "evidence_is_advertisement" in result["evidence"][0]["reason"]


async def test_figures_that_do_not_fit_into_one_result_come_with_the_cursor_each_once(agent: Agent) -> None:
    advertised = "\n".join(f"담보{chr(0xAC00 + number)} 가입금액 {number + 1:,}만원" for number in range(400))
    first, *others = await agent.follow(TOOL, text=advertised)
    assert others and first["not_delivered"] > 0 and "call check_figures again" in first["next_step"]
    told = [figure["number"] for result in (first, *others) for figure in result["figures"]]
    assert told == list(range(1, 401))
    assert all(result["counts"]["cannot_compare"] == 400 for result in (first, *others))


async def test_calls_at_once_give_what_one_gives(agent: Agent, tmp_path: Path) -> None:
    handle = await agent.upload(written(tmp_path / "filed.csv", separated([*FILED, ["골절진단비", "70만원", "1.0%"]])))
    arguments = {"text": ADVERTISED + "\n골절진단비 70만원", "evidence": [handle]}
    first, *others = await asyncio.gather(*(agent.call(TOOL, **arguments) for _ in range(4)))
    assert first["counts"] == {"match": 2, "mismatch": 1, "cannot_compare": 1}
    assert all(other == first for other in others)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "nothing_to_read"),
        ({"text": "1원", "source": "file_" + "0" * 32}, "two_sources"),
        ({"source": "file_" + "0" * 32}, "file_unknown"),
        ({"text": "1원", "cursor": "x"}, "cursor_invalid"),
        ({"text": "1원", "evidence": ["a"] * 11}, "invalid_arguments"),
        ({"text": "1원", "proof": []}, "unknown_argument"),
    ],
)
async def test_a_wrong_call_says_what_is_wrong(agent: Agent, arguments: dict[str, Any], code: str) -> None:
    with pytest.raises(ToolFailure, match=code):
        await agent.call(TOOL, **arguments)


@pytest.fixture(scope="module")
def filed_pdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pages: a ruled table, and a picture of a table without rulings."""
    folder = tmp_path_factory.mktemp("filed")
    picture = Image.new("RGB", (900, 400), "white")
    draw, font = ImageDraw.Draw(picture), load_font(find_fonts()["body"], 28)
    for number, row in enumerate(
        (["담보", "기본형", "고급형"], ["골절진단비", "20만원", "30만원"], ["화상진단비", "10만원", "40만원"])
    ):
        for column, text in enumerate(row):
            draw.text((60 + 300 * column, 40 + 100 * number), text, font=font, fill="black")
    picture.save(folder / "table.png")
    pdf = FPDF()
    pdf.add_font("nanum", "", str(find_fonts()["body"]))
    pdf.add_page()
    pdf.set_font("nanum", size=11)
    with pdf.table(headings_style=FontFace(emphasis=None)) as table:
        for cells in FILED:
            row = table.row()
            for cell in cells:
                row.cell(cell)
    pdf.add_page()
    pdf.image(folder / "table.png", x=10, y=30, w=190)
    pdf.output(str(folder / "filed.pdf"))
    return folder / "filed.pdf"


async def test_tables_of_pdfs_count_with_their_headers_ruled_or_read_from_a_picture(
    agent: Agent, worker: RunningWorker, filed_pdf: Path
) -> None:
    advertised = ADVERTISED + "\n화상진단비 고급형 40만원"
    handle = await agent.upload(filed_pdf)
    *_, result = await agent.follow(TOOL, text=advertised, evidence=[handle])
    found = {figure["text"]: figure for figure in result["figures"]}
    assert states(result)["5,000만원"] != "match"
    assert found["1억원"]["state"] == found["40만원"]["state"] == "match"
    ruled, read = found["1억원"]["evidence"], found["40만원"]["evidence"]
    assert (ruled["page"], ruled["source"], ruled["label"]) == (1, "text_layer", "상해사망 가입금액")
    assert (read["page"], read["source"], read["label"]) == (2, "ocr", "화상진단비 고급형")
    assert result["evidence"][0]["tables"] == 2
    report = httpx.get(
        f"{worker.base_url}/artifacts/{result['report'].removeprefix('artifact://')}", headers=worker.headers
    )
    assert report.headers["content-type"].startswith("text/html")
    assert "40만원" in report.text and "filed.pdf" in report.text


async def test_a_picture_is_evidence_as_well(agent: Agent, filed_pdf: Path) -> None:
    handle = await agent.upload(filed_pdf.with_name("table.png"))
    *_, result = await agent.follow(TOOL, text="골절진단비 기본형 20만원", evidence=[handle])
    (figure,) = result["figures"]
    assert (figure["state"], figure["evidence"]["label"]) == ("match", "골절진단비 기본형")
    assert (result["evidence"][0]["kind"], result["evidence"][0]["tables"]) == ("image", 1)


async def test_the_figures_of_an_advertisement_are_boxed_on_its_pages(
    agent: Agent, worker: RunningWorker, filed_pdf: Path, tmp_path: Path
) -> None:
    handle = await agent.upload(filed_pdf)
    filed = await agent.upload(
        written(tmp_path / "filed.csv", separated([*FILED[:2], ["상해사망", "5천만원", "80.0%"]]))
    )
    *_, result = await agent.follow(TOOL, source=handle, evidence=[filed])
    first = result["figures"][0]
    assert (first["state"], first["text"], first["page"], first["number"]) == ("mismatch", "1억원", 1, 1)
    x0, y0, x1, y1 = first["box_xyxy"]
    assert 0 < x0 < x1 < 600 and 0 < y0 < y1 < 200
    assert result["file"] == "filed.pdf" and result["coverage"]["total"] == 2
    *_, part = await agent.follow(TOOL, source=handle, evidence=[filed], pages="1")
    assert part["unread"] == "page 2 not asked for" and part["counts"]["mismatch"] == 1
    report = httpx.get(
        f"{worker.base_url}/artifacts/{result['report'].removeprefix('artifact://')}", headers=worker.headers
    )
    assert report.text.count("data:image/jpeg") == 2


def test_while_files_are_being_read_there_are_no_figures_and_a_cursor(
    worker: RunningWorker, filed_pdf: Path, tmp_path: Path
) -> None:
    fresh = tmp_path / "fresh.pdf"
    fresh.write_bytes(filed_pdf.read_bytes() + b"\n% another content, so that nothing of it was read before\n")

    async def call(seconds: float, cursor: str) -> Any:
        async def chunks() -> Any:
            yield fresh.read_bytes()

        stored = await worker.services.uploads.store(chunks(), "fresh.pdf")
        with deadline_scope(Deadline.after(seconds, margin_s=1.0)):
            return await check_figures(
                worker.services, Request(text=ADVERTISED, evidence=(stored.handle,), cursor=cursor)
            )

    first = inside(worker, call(0.0, ""))
    assert (first.findings, first.delivery, first.report) == (None, None, None)
    assert first.label.label == "none" and first.cursor
    second = inside(worker, call(50.0, first.cursor))
    assert second.cursor is None and len(second.findings) == 3


def test_large_tables_are_read_on_behind_the_end_of_a_call(worker: RunningWorker, tmp_path: Path) -> None:
    workbook = simple(tmp_path / "large.xlsx", [*(list(row) for row in FILED), *[["기타", n] for n in range(300)]])

    async def call(seconds: float, cursor: str) -> Any:
        async def chunks() -> Any:
            yield workbook.read_bytes()

        stored = await worker.services.uploads.store(chunks(), "large.xlsx")
        with deadline_scope(Deadline.after(seconds, margin_s=1.0)):
            return await check_figures(
                worker.services, Request(text=ADVERTISED, evidence=(stored.handle,), cursor=cursor)
            )

    first = inside(worker, call(0.0, ""))
    assert first.findings is None and first.cursor and first.evidence[0].unread == "not reached yet"
    assert first.evidence[0].coverage.unreached == (1,)
    second = inside(worker, call(50.0, first.cursor))
    assert second.cursor is None and [one.state for one in second.findings].count("mismatch") == 1


async def test_the_tool_judges_pairs_of_files_as_the_pure_check_judges_their_texts(
    agent: Agent, tmp_path: Path
) -> None:
    for pair in pairs(2):
        handles = []
        for number, table in enumerate(pair.tables):
            handles.append(
                await agent.upload(saved(table, tmp_path / f"{pair.seed}-{number}", as_csv=bool(number % 2)))
            )
        for name, lines in pair.texts.items():
            handles.append(await agent.upload(written(tmp_path / f"{pair.seed}-{name}.txt", "\n".join(lines).encode())))
        *_, result = await agent.follow(TOOL, text="\n".join(pair.lines), evidence=handles)
        told = [(figure["text"], figure["state"]) for figure in result["figures"]]
        assert sorted(told) == sorted((one.figure.text, one.state) for one in pair.judged())
        wrong = {one.figure.text for one, truth in zip(pair.judged(), pair.truth, strict=True) if truth == "wrong"}
        assert {text for text, state in told if state == "mismatch"} <= wrong


def saved(table: Table, path: Path, *, as_csv: bool) -> Path:
    rows = [list(row) for row in ((table.title,), *table.rows) if any(row)]
    if as_csv:
        return written(path.with_suffix(".csv"), separated(rows))
    return simple(path.with_suffix(".xlsx"), [list(row) for row in rows])
