"""File rules and attachments: verdicts over facts that need no reading."""

from __future__ import annotations

import pytest

from sam2_mcp_worker.checks.attachments import attachment_findings, is_among, listed_names
from sam2_mcp_worker.checks.file_rules import (
    BleedSide,
    Cut,
    PageFacts,
    PlacedPicture,
    cut_lines,
    file_findings,
)
from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.checks.rule_packs.sections import FileRules


def rules(**fields: object) -> FileRules:
    return FileRules(basis="house", note="ours", **fields)


def one(made: FileRules, *pages: PageFacts) -> Finding:
    (found,) = file_findings(made, pages)
    return found


@pytest.mark.parametrize(
    ("size_mm", "verdict"),
    [
        ((210.0, 297.0), "met"),
        ((297.0, 210.0), "met"),
        ((212.0, 297.9), "met"),
        ((213.0, 297.0), "not_met"),
        (None, "cannot_tell"),
    ],
)
def test_a_page_has_one_of_the_sizes_either_way_up(size_mm, verdict):
    found = one(rules(page_sizes_mm=((210.0, 297.0), (100.0, 100.0))), PageFacts(1, size_mm=size_mm))
    assert (found.kind, found.rule, found.verdict) == ("file_defect", "files.page_sizes_mm", verdict)


@pytest.mark.parametrize(
    ("bleed", "verdict", "told"),
    [
        ((), "met", "kept"),
        ((BleedSide("top", 3.0, True),), "met", "kept"),
        ((BleedSide("top", 3.0, None),), "met", "kept"),
        ((BleedSide("top", 3.0, True), BleedSide("left", 1.0, None)), "not_met", "(left) and goes on for 1.0 mm"),
        ((BleedSide("top", 3.0, False),), "review", "seems to end before 3 mm (top)"),
    ],
)
def test_artwork_at_the_trim_goes_on_behind_it(bleed, verdict, told):
    found = one(rules(min_bleed_mm=3.0), PageFacts(1, bleed=bleed, trim_stated=True))
    assert found.verdict == verdict and told in found.what


def test_without_a_stated_trim_the_page_was_taken_for_it_and_that_is_told():
    found = one(rules(min_bleed_mm=3.0), PageFacts(1, bleed=(BleedSide("top", 0.0),)))
    assert found.what.endswith("no trim is stated, so the page itself was taken for it")


@pytest.mark.parametrize(
    ("spaces", "verdict"),
    [
        (("cmyk", "gray"), "met"),
        (("cmyk", "rgb"), "not_met"),
        (("cmyk", "unknown"), "cannot_tell"),
        (("rgb", "unknown"), "not_met"),
    ],
)
def test_colours_are_in_the_allowed_spaces(spaces, verdict):
    assert one(rules(colour_spaces=("cmyk", "gray")), PageFacts(1, colour_spaces=spaces)).verdict == verdict


def test_the_coarsest_picture_is_told_with_its_place():
    pictures = (PlacedPicture(300.0), PlacedPicture(70.4, (1.0, 2.0, 3.0, 4.0)), PlacedPicture(120.0))
    found = one(rules(min_image_dpi=150), PageFacts(1, pictures=pictures))
    assert (found.verdict, found.measured, found.unit, found.box_xyxy) == ("not_met", 70.4, "dpi", (1.0, 2.0, 3.0, 4.0))
    assert "1 more pictures" in found.what
    assert one(rules(min_image_dpi=150), PageFacts(1, pictures=(PlacedPicture(149.6),))).verdict == "met"


def test_fonts_that_are_not_in_the_file_are_named():
    fonts = {f"Font{i}": False for i in range(7)} | {"Mine": True}
    found = one(rules(fonts_embedded=True), PageFacts(2, fonts=fonts))
    assert (found.verdict, found.page) == ("not_met", 2)
    assert found.what == "not embedded: Font0, Font1, Font2, Font3, Font4 and 2 more"


@pytest.mark.parametrize(
    ("ink_share", "lines", "verdict"),
    [(0.0, 0, "not_met"), (0.001, 0, "review"), (0.001, 1, "met"), (0.05, 0, "met")],
)
def test_an_empty_page_is_one_without_ink(ink_share, lines, verdict):
    found = one(rules(empty_pages_allowed=False), PageFacts(1, ink_share=ink_share, lines=lines))
    assert found.verdict == verdict


def test_what_an_edge_cuts_is_a_defect_where_it_is_sure():
    cuts = (Cut("text is cut", True, (1.0, 1.0, 2.0, 2.0)), Cut("a shape is cut", False))
    found = file_findings(rules(cut_off_allowed=False), [PageFacts(1, cuts=cuts)])
    assert [(each.verdict, each.what) for each in found] == [("not_met", "text is cut"), ("review", "a shape is cut")]


def test_rules_that_are_not_set_and_facts_that_nobody_knows_give_nothing():
    assert file_findings(None, [PageFacts(1)]) == ()
    assert file_findings(rules(), [PageFacts(1, ink_share=0.0, fonts={"a": False})]) == ()
    all_rules = rules(
        min_bleed_mm=3, colour_spaces=("cmyk",), min_image_dpi=150, fonts_embedded=True, empty_pages_allowed=False,
        cut_off_allowed=False,
    )  # fmt: skip
    assert file_findings(all_rules, [PageFacts(1)]) == ()


def test_a_rule_that_every_page_keeps_is_told_once():
    found = one(rules(fonts_embedded=True), PageFacts(1, fonts={}), PageFacts(2, fonts={"a": True}), PageFacts(3))
    assert (found.verdict, found.page, found.what) == ("met", None, "kept on 2 pages")


def page(*lines: ReadLine, size: tuple[float, float] | None = (400.0, 300.0)) -> ReadPage:
    return ReadPage(1, "done", lines, size=size)


def line(text: str, *box: float, source: str = "text_layer") -> ReadLine:
    return ReadLine(text, source, box or None, 10.0)  # type: ignore[arg-type]


def test_a_text_layer_says_surely_which_line_is_cut():
    cut, whole = line("잘린 글자", 380.0, 100.0, 420.0, 112.0), line("다 있는 글자", 300.0, 100.0, 401.0, 112.0)
    (found,) = cut_lines(page(cut, whole))
    assert found.sure and found.what == "text is cut off by the right edge: '잘린 글자'"


@pytest.mark.parametrize(
    ("box", "side"),
    [
        ((-9.0, 10.0, 50.0, 20.0), "left"),
        ((10.0, -9.0, 50.0, 1.0), "top"),
        ((10.0, 299.0, 50.0, 309.0), "bottom"),
    ],
)
def test_each_edge_cuts(box, side):
    (found,) = cut_lines(page(line("글자", *box)))
    assert f"the {side} edge" in found.what


def test_what_ocr_sees_at_an_edge_may_go_on():
    (found,) = cut_lines(page(line("글자", 10.0, 0.0, 50.0, 10.0, source="ocr")))
    assert not found.sure and "touches the top edge" in found.what
    assert cut_lines(page(line("글자", 10.0, 5.0, 50.0, 15.0, source="ocr"))) == ()


def test_ornaments_lines_without_a_box_and_pages_without_a_size_cut_nothing():
    assert cut_lines(page(line("----", -50.0, 0.0, 50.0, 10.0), line("글자"))) == ()
    assert cut_lines(page(line("글자", -50.0, 0.0, 50.0, 10.0), size=None)) == ()


WORDS = ("붙임", "첨부", "별첨")


def listed(*texts: str) -> list[str]:
    read = Reading("pdf", "pt", (page(*(line(text, 1.0, 2.0, 3.0, 4.0) for text in texts)),))
    return [each.name for each in listed_names(read, WORDS)]


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["붙임: 1. 상품설명서 1부 2. 약관 1부. 끝."], ["상품설명서", "약관"]),
        (["첨부서류 : 상품요약서, 사업방법서"], ["상품요약서", "사업방법서"]),
        (["[별첨] 보험료 산출 근거"], ["보험료 산출 근거"]),
        (["첨부 1. 약관"], ["약관"]),
        (["첨부:", "☑ 상품설명서", "□ 약관", "그 밖의 글"], ["상품설명서", "약관"]),
        (["붙임: 가. 약관 및 상품설명서"], ["가. 약관", "상품설명서"]),
        (["첨부된 약관을 반드시 읽어 보시기 바랍니다"], []),
        (["1. 상품설명서를 읽어 보십시오"], []),
        (["보험료 안내"], []),
    ],
)
def test_a_checklist_is_opened_by_its_word_and_a_sign(texts, names):
    assert listed(*texts) == names


def test_without_words_nothing_is_a_checklist():
    assert listed_names(Reading("pdf", "pt", (page(line("첨부: 약관", 0.0, 0.0, 1.0, 1.0)),)), ()) == ()


@pytest.mark.parametrize(
    ("name", "files", "found"),
    [
        ("상품설명서", ["2026_상품 설명서(최종).pdf"], True),
        ("약관", ["상품설명서.pdf"], False),
        ("Terms", ["insurance-TERMS.docx"], True),
        ("", ["a.pdf"], False),
        ("-", ["a-b.pdf"], False),
    ],
)
def test_a_name_is_found_in_the_names_of_files(name, files, found):
    assert is_among(name, files) is found


def test_a_file_that_the_pack_asks_for_is_missing_when_it_is_not_inside():
    made = rules(attachments=("약관", "상품설명서"))
    found = attachment_findings(made, ["약관.pdf"], (), may_hold_files=True)
    assert [(each.rule, each.verdict) for each in found] == [
        ("files.attachments", "met"),
        ("files.attachments", "not_met"),
    ]


def test_what_could_not_be_listed_or_cannot_be_inside_is_not_called_missing():
    made = rules(attachments=("약관",))
    assert attachment_findings(made, None, (), may_hold_files=True)[0].verdict == "cannot_tell"
    assert attachment_findings(made, [], (), may_hold_files=False)[0].verdict == "review"
    assert attachment_findings(None, [], (), may_hold_files=True) == ()


def test_what_the_document_itself_names_may_come_along_beside_it():
    read = Reading("pdf", "pt", (page(line("붙임: 1. 약관 2. 상품설명서", 1.0, 2.0, 3.0, 4.0)),))
    found = attachment_findings(rules(), ["약관.pdf"], listed_names(read, WORDS), may_hold_files=True)
    assert [(each.rule, each.verdict, each.page) for each in found] == [
        ("files.checklist_words", "met", 1),
        ("files.checklist_words", "review", 1),
    ]
    assert found[1].box_xyxy == (1.0, 2.0, 3.0, 4.0)
