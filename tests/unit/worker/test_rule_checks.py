"""Rules held against whole documents: measured in the budget, cached, and never judged where nothing was measured."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from pikepdf import Array, Name
from PIL import Image, ImageDraw, ImageFont
from tests.fakes.measured_documents import A4, BLUE, FACES, WHITE, Drawn, OwnProcess, services_here, stored
from tests.fakes.pdf_desk import Desk, one_page, show

from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.line_groups import LineRef
from sam2_mcp_worker.checks.reading import Kind, Reading, ReadLine, ReadPage, Unit
from sam2_mcp_worker.checks.rule_packs import RulePack
from sam2_mcp_worker.checks.rule_packs.sections import ContrastRules, FileRules, TextRules
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines import rule_checks
from sam2_mcp_worker.pipelines.rule_checks import RuleChecks, check_rules, worst_first
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

HOUSE: dict[str, Any] = {"basis": "house", "note": "ours"}
TEXT = TextRules(**HOUSE, min_height_pt=6.0, min_height_px=12.0, min_share_of_largest=0.05)
CONTRAST = ContrastRules(**HOUSE, min_ratio=4.5, min_ratio_large=3.0)
FILES = FileRules(
    **HOUSE, page_sizes_mm=((210.0, 297.0), (105.8, 105.8)), min_bleed_mm=3.0, colour_spaces=("cmyk", "gray"),
    min_image_dpi=150.0, fonts_embedded=True, empty_pages_allowed=False, cut_off_allowed=False,
)  # fmt: skip
PACK = RulePack("p", "t", 1, (), text=TEXT, contrast=CONTRAST, files=FILES)
NOTICE = "이 보험계약은 예금자보호법에 따라 보호됩니다"


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return services_here(tmp_path / "data")


async def checked(
    services: Services,
    file: StoredFile,
    reading: Reading,
    pack: RulePack | None = PACK,
    lines: Any = None,
    s: float = 60,
) -> RuleChecks:
    phrases: dict[str, list[list[LineRef]]] = {}
    for ref, name in (lines or {}).items():
        phrases.setdefault(name, [[]])[0].append(ref)
    return await check_rules(services, file, reading, pack, phrases, deadline=Deadline.after(s))


def told(found: RuleChecks, *verdicts: str) -> list[tuple[str, str, int | None]]:
    return sorted(
        (one.rule, one.verdict, one.page) for one in found.findings if not verdicts or one.verdict in verdicts
    )


async def test_a_leaflet_is_measured_line_by_line_and_told_where_it_fails(services, tmp_path):
    drawn = Drawn().page().box(0, 0, A4[0], 60, BLUE).text(50, 45, 36, "큰 제목입니다", WHITE)
    drawn.text(50, 200, 5, NOTICE, (150, 150, 150)).text(50, 300, 10, "해약환급금은 적을 수 있습니다")
    drawn.text(530, 500, 14, "잘려 나간 글자입니다").page()
    file, lines = drawn.save(tmp_path / "a.pdf"), {(1, 0): "head", (1, 1): "deposit", (1, 2): "surrender"}
    found = await checked(services, file, drawn.reading(), lines=lines)
    assert told(found, "not_met", "review") == [
        ("contrast.min_ratio", "not_met", 1),
        ("files.colour_spaces", "not_met", 1),
        ("files.cut_off_allowed", "not_met", 1),
        ("files.empty_pages_allowed", "not_met", 2),
        ("files.min_bleed_mm", "not_met", 1),
        ("text.min_height_pt", "not_met", 1),
    ]
    assert {one.rule for one in found.findings if one.verdict == "met"} >= {
        "files.page_sizes_mm", "files.fonts_embedded", "contrast.min_ratio_large", "text.min_share_of_largest",
    }  # fmt: skip
    pale, dark = found.measures[1, 1], found.measures[1, 2]
    assert pale.size is not None and pale.size.told() == "5.0 pt (1.8 mm)"
    assert pale.contrast is not None and 2.8 < pale.contrast.low <= pale.contrast.high < 3.1
    assert dark.contrast is not None and dark.contrast.low > 18
    assert (found.undone, found.waiting) == ((), ())


async def test_what_was_measured_is_not_measured_again(services, tmp_path):
    drawn = Drawn().page(300, 300).text(50, 100, 9, NOTICE)
    file = drawn.save(tmp_path / "a.pdf")
    first = await checked(services, file, drawn.reading(), lines={(1, 0): "a"})
    ran = len(services.decoders.ran)
    assert await checked(services, file, drawn.reading(), lines={(1, 0): "a"}) == first
    assert len(services.decoders.ran) == ran > 0


async def test_without_a_pack_the_lines_are_measured_and_nothing_is_judged(services, tmp_path):
    drawn = Drawn().page(300, 300).text(50, 100, 9, NOTICE).text(50, 200, 20, "제목")
    found = await checked(services, drawn.save(tmp_path / "a.pdf"), drawn.reading(), None, {(1, 0): "a"})
    assert found.findings == () and found.measures.keys() == {(1, 0)}
    assert found.measures[1, 0].size.share_of_largest == pytest.approx(0.45)
    assert found.measures[1, 0].contrast.reason == ""
    assert "page_edges" not in services.decoders.ran


async def test_of_texts_sounds_and_videos_nothing_is_measured(services, tmp_path):
    drawn = Drawn().page(300, 300)
    file = drawn.save(tmp_path / "a.pdf")
    kinds: list[tuple[Kind, Unit]] = [("text", "line"), ("sound", "s"), ("video", "px")]
    for kind, unit in kinds:
        assert await checked(services, file, Reading(kind, unit, ())) == RuleChecks((), {})
    assert await check_rules(services, None, drawn.reading(), PACK, {}, deadline=Deadline.after(9)) == RuleChecks(
        (), {}
    )


async def test_pages_that_were_not_read_are_not_measured(services, tmp_path):
    drawn = Drawn().page(300, 300).page()
    reading = Reading("pdf", "pt", (ReadPage(1, "failed", reason="x"), ReadPage(2, "unreached")))
    found = await checked(services, drawn.save(tmp_path / "a.pdf"), reading)
    assert found.findings == () and services.decoders.ran == []


async def test_a_page_that_cannot_be_measured_is_told_and_never_a_defect(services, tmp_path):
    drawn = Drawn().page(300, 300).text(50, 100, 9, NOTICE)
    drawn.save(tmp_path / "a.pdf")
    reading, broken = drawn.reading(), tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7 nothing")
    found = await checked(services, stored(broken), reading, lines={(1, 0): "deposit"})
    assert told(found, "not_met", "review") == []
    assert ("contrast.min_ratio", "cannot_tell", 1) in told(found) and ("files", "cannot_tell", 1) in told(found)
    assert len(found.undone) == 1 and found.undone[0].startswith("page 1 could not be measured: pdf_damaged")
    assert found.measures[1, 0].contrast.reason


async def test_a_file_that_one_library_refuses_is_still_drawn_and_measured(services, tmp_path):
    drawn = Drawn().page(300, 300).text(50, 100, 9, NOTICE)
    file = drawn.save(tmp_path / "a.pdf")

    def refuses(params: dict[str, Any]) -> dict[str, Any]:
        raise WorkerError("pdf_damaged", "the structure of the PDF cannot be read")

    services.redactors = OwnProcess({"pdf_page_facts": refuses})
    found = await checked(services, file, drawn.reading(), lines={(1, 0): "deposit"})
    assert ("contrast.min_ratio", "met", 1) in told(found) and ("files", "cannot_tell", 1) in told(found)
    assert ("files.page_sizes_mm", "cannot_tell", 1) in told(found)
    assert not any(one.rule in ("files.fonts_embedded", "files.colour_spaces") for one in found.findings)
    (undone,) = found.undone
    assert undone.startswith("page 1: what its file is made of could not be told: pdf_damaged: the structure")


async def test_what_was_not_come_to_in_time_waits_for_the_next_call(services, tmp_path):
    drawn = Drawn().page(300, 300).text(50, 100, 9, NOTICE)
    file = drawn.save(tmp_path / "a.pdf")
    late = await checked(services, file, drawn.reading(), lines={(1, 0): "deposit"}, s=0)
    assert late.waiting == (1,) and late.measures[1, 0].contrast is None
    assert not any(one.kind in ("contrast_too_low", "file_defect") for one in late.findings)
    assert (await checked(services, file, drawn.reading(), lines={(1, 0): "deposit"})).waiting == ()


def printed(trim: str, bleed: str = "", artwork: str = "0 1 0 0 k 0 250 400 250 re f") -> bytes:
    desk = Desk()
    page = desk.page(artwork)
    for key, sides in (("/TrimBox", trim), ("/BleedBox", bleed)):
        if sides:
            page[key] = Array([float(side) for side in sides.split()])
    return desk.save()


@pytest.mark.parametrize(
    ("data", "verdict", "words"),
    [
        # 10 pt are 3.5 mm; the artwork covers the upper half of the sheet.
        (printed("10 10 390 490"), "met", "kept"),
        (printed("10 10 390 490", "7 7 393 493"), "not_met", "(left, top, right) and goes on for 1.1 mm"),
        (printed("10 10 390 490", "", "0 1 0 0 k 10 250 380 240 re f"), "review", "seems to end before 3 mm"),
        (printed("100 100 300 400", "", "0 1 0 0 k 150 150 50 50 re f"), "met", "kept"),
        (printed(""), "not_met", "no trim is stated"),
    ],
)
async def test_bleed_is_asked_where_artwork_reaches_the_trim(data, verdict, words, services, tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(data)
    pack = RulePack("p", "t", 1, (), files=FileRules(**HOUSE, min_bleed_mm=3.0))
    found = await checked(services, stored(path), Reading("pdf", "pt", (ReadPage(1, "done", size=(400, 500)),)), pack)
    (finding,) = found.findings
    assert (finding.rule, finding.verdict) == ("files.min_bleed_mm", verdict) and words in finding.what


async def test_a_turned_page_with_a_user_unit_has_the_size_of_its_trim(services, tmp_path):
    desk = Desk()
    page = desk.page(show("x"), size=(160, 220))
    page.Rotate, page.UserUnit = 90, 2
    page.TrimBox = Array([10, 10, 150, 210])  # 280 x 400 pt on paper
    path = tmp_path / "a.pdf"
    path.write_bytes(desk.save())
    pack = RulePack(
        "p", "t", 1, (), files=FileRules(**HOUSE, page_sizes_mm=((98.8, 141.1),), page_size_tolerance_mm=0.1)
    )
    (finding,) = (
        await checked(services, stored(path), Reading("pdf", "pt", (ReadPage(1, "done", size=(220, 160)),)), pack)
    ).findings
    assert finding.verdict == "met"


def grey_picture(desk: Desk, width: int, height: int) -> Any:
    return desk.stream(
        b"\x80" * (width * height), Type=Name.XObject, Subtype=Name.Image, Width=width, Height=height,
        BitsPerComponent=8, ColorSpace=Name.DeviceGray,
    )  # fmt: skip


async def test_pictures_are_as_sharp_as_they_are_placed(services, tmp_path):
    desk = Desk()
    grey, ramp = grey_picture(desk, 100, 100), grey_picture(desk, 2, 1)
    desk.page(
        "q 144 0 0 144 20 20 cm /G Do Q q 36 0 0 36 200 20 cm /G Do Q q 300 0 0 100 20 300 cm /R Do Q",
        XObject={"G": grey, "R": ramp},
    )
    path = tmp_path / "a.pdf"
    path.write_bytes(desk.save())
    pack = RulePack("p", "t", 1, (), files=FileRules(**HOUSE, min_image_dpi=150.0))
    reading = Reading("pdf", "pt", (ReadPage(1, "done", size=(400, 500)),))
    (finding,) = (await checked(services, stored(path), reading, pack)).findings
    assert (finding.verdict, finding.measured, finding.box_xyxy) == ("not_met", 50.0, (20.0, 336.0, 164.0, 480.0))


async def test_a_captured_screen_has_pixels_and_no_millimetres(services, tmp_path):
    drawn = Drawn().page(800, 3000).text(50, 100, 10, NOTICE)
    found = await checked(services, drawn.save(tmp_path / "a.pdf"), drawn.reading(), lines={(1, 0): "deposit"})
    assert ("text.min_height_px", "not_met", 1) in told(found)
    assert ("files.page_sizes_mm", "cannot_tell", 1) in told(found)
    assert not any(one.rule in ("files.min_bleed_mm", "files.min_image_dpi") for one in found.findings)


async def test_attached_files_are_looked_for_inside(services, tmp_path):
    drawn = Drawn().page(300, 300).text(50, 100, 9, "붙임: 1. 약관 2. 상품설명서")
    path = drawn.save(tmp_path / "plain.pdf").path
    with pikepdf.open(path) as pdf:
        pdf.attachments["약관.pdf"] = pikepdf.AttachedFileSpec(pdf, b"x", filename="약관.pdf")
        pdf.save(tmp_path / "a.pdf")
    asked = FileRules(**HOUSE, attachments=("약관", "청약서"), checklist_words=("붙임",))
    pack = RulePack("p", "t", 1, (), files=asked)
    found = await checked(services, stored(tmp_path / "a.pdf"), drawn.reading(), pack)
    assert told(found) == [
        ("files.attachments", "met", None),
        ("files.attachments", "not_met", None),
        ("files.checklist_words", "met", 1),
        ("files.checklist_words", "review", 1),
    ]
    assert "page_edges" not in services.decoders.ran
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7")
    found = await checked(services, stored(tmp_path / "broken.pdf"), drawn.reading(), pack)
    assert told(found)[0] == ("files.attachments", "cannot_tell", None)


def picture(path: Path, size_px: int = 20, **options: Any) -> tuple[StoredFile, Reading]:
    drawn = Image.new("RGB", (800, 300), "white")
    font = ImageFont.truetype(str(FACES["body"]), size_px)
    draw = ImageDraw.Draw(drawn)
    draw.text((40, 100), NOTICE, fill=(150, 150, 150), font=font)
    box = draw.textbbox((40, 100), NOTICE, font=font)
    drawn.save(path, **options)
    line = ReadLine(NOTICE, "ocr", (box[0], box[1], box[2], box[3]), float(size_px), 0.9)
    return stored(path), Reading("image", "px", (ReadPage(1, "done", (line,), size=(800.0, 300.0)),))


async def test_a_picture_has_points_where_it_states_a_resolution_and_pixels_elsewhere(services, tmp_path):
    file, reading = picture(tmp_path / "paper.png", 30, dpi=(300, 300))
    found = await checked(services, file, reading, lines={(1, 0): "deposit"})
    assert found.measures[1, 0].size.unit == "pt"
    assert found.measures[1, 0].size.size == pytest.approx(7.2, abs=0.01)
    assert ("files.page_sizes_mm", "not_met", 1) in told(found) and ("files.min_image_dpi", "met", None) in told(found)
    assert ("files.colour_spaces", "not_met", 1) in told(found)
    assert ("contrast.min_ratio", "not_met", 1) in told(found)
    file, reading = picture(tmp_path / "screen.png", 20)
    found = await checked(services, file, reading, lines={(1, 0): "deposit"})
    assert found.measures[1, 0].size.unit == "px"
    assert ("files.page_sizes_mm", "cannot_tell", 1) in told(found)


async def test_a_picture_holds_no_attachments(services, tmp_path):
    file, reading = picture(tmp_path / "a.png")
    pack = RulePack("p", "t", 1, (), files=FileRules(**HOUSE, attachments=("약관",)))
    assert told(await checked(services, file, reading, pack)) == [("files.attachments", "review", None)]


async def test_all_text_is_measured_where_the_pack_says_all_up_to_a_bound(services, tmp_path, monkeypatch):
    drawn = Drawn().page(300, 300)
    for row in range(6):
        drawn.text(50, 100 + 30 * row, 12, f"{NOTICE} {row}", (200, 200, 200) if row == 2 else (0, 0, 0))
    pack = RulePack("p", "t", 1, (), contrast=ContrastRules(**HOUSE, min_ratio=4.5, applies_to="all"))
    file = drawn.save(tmp_path / "a.pdf")
    found = await checked(services, file, drawn.reading(), pack)
    (finding,) = found.findings
    assert (finding.verdict, finding.what.split(":")[0]) == ("not_met", "page 1")
    assert finding.box_xyxy == drawn.lines[0][2].box_xyxy
    monkeypatch.setattr(rule_checks, "MAX_LINES", 2)
    found = await checked(services, file, drawn.reading(), pack)
    assert found.undone == ("page 1: contrast was measured of the first 2 of 6 lines",)
    assert [one.verdict for one in found.findings] == ["met"]


async def test_calls_at_the_same_time_share_the_work(services, tmp_path):
    drawn = Drawn().page(300, 300).text(50, 100, 9, NOTICE)
    file = drawn.save(tmp_path / "a.pdf")
    both = await asyncio.gather(*(checked(services, file, drawn.reading(), lines={(1, 0): "a"}) for _ in range(3)))
    assert both[0] == both[1] == both[2] and services.decoders.ran.count("text_contrast") == 1


def test_findings_are_told_worst_first():
    made = [
        Finding("file_defect", "r", verdict, "", "house") for verdict in ("met", "review", "not_met", "cannot_tell")
    ]
    assert [one.verdict for one in worst_first(made)] == ["not_met", "review", "cannot_tell", "met"]


async def test_an_unsized_line_or_page_is_passed_over(services, tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(one_page(show("words")))
    bare = Reading("pdf", "pt", (ReadPage(1, "done", (ReadLine("words", "text_layer"),)),))
    found = await checked(services, stored(path), bare, lines={(1, 0): "a"})
    assert found.measures[1, 0].size is None and found.measures[1, 0].contrast is None


async def test_a_page_that_takes_longer_than_a_call_has_is_measured_by_and_by(services, tmp_path):
    drawn = Drawn().page(300, 300).text(50, 100, 9, NOTICE)
    file, lines = drawn.save(tmp_path / "a.pdf"), {(1, 0): "deposit"}
    inner, begun, go_on = services.decoders, [], asyncio.Event()

    class Slow:
        async def run(self, task: str, params: dict[str, Any], **rest: Any) -> dict[str, Any]:
            begun.append(task)
            await go_on.wait()
            return await inner.run(task, params, **rest)

    services.decoders = Slow()
    assert (await checked(services, file, drawn.reading(), lines=lines, s=0.05)).waiting == (1,)
    go_on.set()
    assert (await checked(services, file, drawn.reading(), lines=lines)).waiting == ()
    assert begun.count("pdf_page") == 1, "it was not begun anew"


async def test_white_print_on_no_ground_is_no_empty_page(services, tmp_path):
    pack = RulePack("p", "t", 1, (), files=FileRules(**HOUSE, empty_pages_allowed=False))
    for mode, colour, verdicts in (("RGBA", (255, 255, 255, 0), []), ("RGB", (255, 255, 255), ["not_met"])):
        Image.new(mode, (80, 30), colour).save(tmp_path / f"{mode}.png")
        reading = Reading("image", "px", (ReadPage(1, "done", size=(80.0, 30.0)),))
        found = await checked(services, stored(tmp_path / f"{mode}.png"), reading, pack)
        assert [one.verdict for one in found.findings] == verdicts
