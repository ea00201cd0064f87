"""Print beside, inside and over a text layer: what is printed counts."""

from sam2_mcp_worker.engines.ports import TextLine
from sam2_mcp_worker.pipelines.overprint import LayerLine, compare
from sam2_mcp_worker.pipelines.text_layer import ReadableScripts

KOREAN = ReadableScripts(["kor"])
CLAIM = LayerLine("최저보증이율 연복리 확정", (100, 100, 400, 120))


def read(text: str, box: tuple[int, int, int, int] = (98, 96, 402, 124), confidence: float = 0.9) -> TextLine:
    return TextLine(text, box, 16.0, confidence)


def test_the_same_line_read_again_is_not_new() -> None:
    found = compare([CLAIM], [read("최저보증이율 연복리 획정")], [(100, 101, 400, 119)], KOREAN)
    assert found == type(found)((), (), frozenset())


def test_a_cell_of_a_row_is_a_part_of_the_row() -> None:
    row = LayerLine("구분 내용 참고", (100, 100, 400, 120))
    assert compare([row], [read("내용", (220, 95, 260, 125))], [], KOREAN).new_lines == ()


def test_print_that_covers_a_layer_line_counts_and_the_covered_line_does_not() -> None:
    disclaimer = read("원금 손실이 발생할 수 있음")
    found = compare([CLAIM], [disclaimer], [], KOREAN)
    assert found.new_lines == (disclaimer,)
    assert found.printed_over == {0}


def test_a_badge_on_a_long_line_is_new_and_hides_nothing() -> None:
    badge = read("갱신형 특약", (110, 98, 180, 122))
    found = compare([CLAIM], [badge], [], KOREAN)
    assert found.new_lines == (badge,)
    assert found.printed_over == frozenset()


def test_print_that_could_not_be_read_over_a_readable_line_is_unread_ink() -> None:
    found = compare([CLAIM], [read("쉙갹 뷁훍 퉯", confidence=0.4)], [], KOREAN)
    assert found.new_lines == ()
    assert found.unread_ink == ((98, 96, 402, 124),)


def test_a_script_that_the_reader_does_not_know_is_not_contradicted() -> None:
    arabic = LayerLine("السلام عليكم ورحمة", (100, 100, 400, 120))
    found = compare([arabic], [read("5190 |6", confidence=0.4)], [], KOREAN)
    assert found == type(found)((), (), frozenset())


def test_lines_and_ink_elsewhere_are_new() -> None:
    other, ink = read("그림 속의 글자", (100, 300, 300, 320)), (100, 500, 200, 520)
    found = compare([CLAIM], [other, read("※", (98, 96, 402, 124))], [ink], KOREAN)
    assert found.new_lines == (other,)
    assert found.unread_ink == (ink,)


def test_a_confident_reading_of_a_script_that_the_reader_does_not_know_hides_nothing() -> None:
    cyrillic = LayerLine("СОСТАВ: ВОДА", (100, 100, 400, 120))
    found = compare([cyrillic], [read("COCTAB: BOAA")], [], KOREAN)
    assert found.printed_over == frozenset()
