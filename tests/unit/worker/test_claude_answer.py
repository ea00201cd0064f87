"""Claude's answers read: cut anywhere, wrapped in talk, or nonsense, nothing is kept that was not certainly said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sam2_mcp_worker.engines.claude_answer import Cut, clean_text, parse_answer, read_answer
from sam2_mcp_worker.engines.ports import Region, Sight, TextLine, Wanted
from sam2_mcp_worker.engines.vision_errors import VisionError

BOTH = Wanted(text=True, labels=("coin", "seal"))
TEXT = Wanted(text=True)
SIZE = 1000

words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12)
spans = st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)).map(lambda pair: (min(pair), max(pair) + 1))
boxes = st.tuples(spans, spans).map(lambda xy: [xy[0][0], xy[1][0], xy[0][1], xy[1][1]])
confidences = st.integers(0, 100).map(lambda value: value / 100)
lines = st.builds(lambda text, sure, box: {"text": text, "confidence": sure, "box": box}, words, confidences, boxes)
regions = st.builds(
    lambda label, sure, box: {"label": label, "confidence": sure, "box": box},
    st.sampled_from(BOTH.labels),
    confidences,
    boxes,
)
answers = st.fixed_dictionaries(
    {
        "regions": st.lists(regions, max_size=4, unique_by=lambda item: (item["label"], *item["box"])),
        "lines": st.lists(lines, max_size=4, unique_by=lambda item: (item["text"], *item["box"])),
    }
)


def read(text: str, wanted: Wanted = BOTH, cut: Cut = "") -> Sight:
    return read_answer(text, wanted, width_px=SIZE, height_px=SIZE, cut=cut)


def line(**changes: Any) -> dict[str, Any]:
    return {"text": "가입금액 1억원", "confidence": 0.9, "box": [10, 20, 300, 40]} | changes


def closes_item(text: str) -> bool:
    """Whether this is the beginning of an answer that ends right behind an item (and not behind the whole answer)."""
    for closing in ("]}", '], "lines": []}'):
        try:
            items = json.loads(text + closing)
        except ValueError:
            continue
        return text.endswith("}") and any(items.values())
    return False


def answer_of(*items: Any) -> str:
    return json.dumps({"lines": list(items)}, ensure_ascii=False)


FEW = settings(max_examples=40, deadline=None)


@FEW
@given(answers, st.booleans())
def test_a_whole_answer_is_read_as_it_stands(answer: dict[str, Any], ascii_only: bool) -> None:
    sight = read(json.dumps(answer, ensure_ascii=ascii_only))
    assert [(item.text, list(item.box_xyxy_px), item.confidence) for item in sight.lines] == [
        (item["text"], item["box"], item["confidence"]) for item in answer["lines"]
    ]
    assert [(item.label, list(item.box_xyxy_px), item.confidence) for item in sight.regions] == [
        (item["label"], item["box"], item["confidence"]) for item in answer["regions"]
    ]
    assert (sight.cut, sight.dropped) == ("", 0)


@FEW
@given(answers, st.data())
def test_a_cut_answer_keeps_whole_items_only_and_all_of_them(answer: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(answer, ensure_ascii=False, indent=data.draw(st.sampled_from([None, 1])))
    end = data.draw(st.integers(0, len(text) - 1))
    whole, part = read(text), read(text[:end], cut="tokens")
    assert part.cut == "tokens"
    assert part.regions == whole.regions[: len(part.regions)]
    assert part.lines == whole.lines[: len(part.lines)]
    # Items are in the order of the answer, and each of them whose bracket has come is there.
    ends = [index + 1 for index in range(len(text) - 1) if closes_item(text[: index + 1])]
    assert len(part.regions) + len(part.lines) == sum(item_end <= end for item_end in ends)


@FEW
@given(answers, st.sampled_from(["", "Here it is:\n\n```json\n", "\ufeff"]), st.sampled_from(["", "\n```", "\nDone!"]))
def test_talk_and_fences_around_an_answer_change_nothing(answer: dict[str, Any], before: str, after: str) -> None:
    text = json.dumps(answer)
    assert read(before + text + after) == read(text)


@FEW
@given(answers, st.data())
def test_a_cut_answer_that_claims_to_be_whole_counts_as_cut(answer: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(answer)
    cut_in_lines = text[: data.draw(st.integers(text.index('"lines": [') + 10, len(text) - 1))]
    try:
        assert read(cut_in_lines).cut == "tokens"
    except VisionError as error:
        assert error.kind == "no_answer"
        assert "}" not in cut_in_lines


def test_raw_line_breaks_and_quotes_in_texts_are_repaired() -> None:
    broken = '{"lines":[{"text":"보장\n내용 "갱신형" 특약","confidence":0.9,"box":[1,2,30,40]}]}'
    sight = read(broken, TEXT)
    assert [item.box_xyxy_px for item in sight.lines] == [(1, 2, 30, 40)]
    assert sight.lines[0].text.startswith("보장 내용")
    assert sight.cut == ""


def test_of_a_repaired_and_cut_answer_the_last_item_goes() -> None:
    broken = (
        '{"lines":[{"text":"a "b" c","confidence":0.9,"box":[1,2,30,40]},{"text":"d","confidence":0.9,"box":[1,2,30'
    )
    assert [item.box_xyxy_px for item in read(broken, TEXT, cut="time").lines] == [(1, 2, 30, 40)]


@pytest.mark.parametrize(
    "text",
    [
        '{"lines":[]} {"lines":[ITEM]}',
        '{"lines":[ITEM],"lines":[]}',
        '{"lines":[]}\n\nI missed one:\n```json\n[ITEM]\n```',
    ],
)
def test_a_second_list_neither_hides_the_first_nor_is_hidden_by_it(text: str) -> None:
    assert len(read(text.replace("ITEM", json.dumps(line())), TEXT).lines) == 1


def test_what_is_said_twice_of_one_place_is_there_once() -> None:
    coin = {"label": "coin", "confidence": 0.9, "box": [1, 1, 9, 9]}
    twice = {"regions": [coin, coin | {"confidence": 0.2}, coin | {"box": [20, 1, 29, 9]}], "lines": [line()] * 400}
    sight = read(json.dumps(twice))
    assert [(region.box_xyxy_px, region.confidence) for region in sight.regions] == [
        ((1, 1, 9, 9), 0.9),
        ((20, 1, 29, 9), 0.9),
    ]
    assert len(sight.lines) == 1
    assert sight.dropped == 0


def test_an_item_that_cannot_be_repaired_is_counted() -> None:
    endless = '{"text":"a "b" ' + "c" * 2000 + '","confidence":0.9,"box":[1,2,30,40]}'
    broken = '{"lines":[{"text":"a "b" c","confidence":0.9,"box":[1,2,30,40]},' + endless + "]}"
    sight = read(broken, TEXT)
    assert (len(sight.lines), sight.dropped, sight.cut) == (1, 1, "")


@pytest.mark.parametrize(
    "item",
    [
        line(box=[300, 20, 10, 40]),
        line(box=[10, 20, 10, 40]),
        line(box=[2000, 20, 3000, 40]),
        line(box=[0, 0, 99_999, 99_999]),
        line(box=[10, -900, 300, 40]),
        line(box=[10, 20, 300]),
        line(box=["10", 20, 300, 40]),
        line(box=[True, 20, 300, 40]),
        line(box=[10, 20, 1e300, 40]),
        line(box=None),
        line(confidence=1.5),
        line(confidence=-0.1),
        line(confidence="high"),
        line(confidence=float("nan")),
        line(text=""),
        line(text=" \u200b\x00 "),
        line(text=17),
        {},
        [],
        "line",
        None,
    ],
)
def test_an_item_that_makes_no_sense_is_dropped_and_counted(item: Any) -> None:
    sight = read(answer_of(line(), item), TEXT)
    assert len(sight.lines) == 1
    assert sight.dropped == 1


def test_an_answer_of_nothing_but_nonsense_is_no_answer() -> None:
    with pytest.raises(VisionError) as caught:
        read(answer_of(line(box=[])), TEXT)
    assert caught.value.kind == "no_answer"


def test_a_label_from_outside_the_list_is_dropped_and_counted() -> None:
    foreign = {"label": "gold bar", "confidence": 0.9, "box": [1, 1, 9, 9]}
    good = {"label": "coin", "confidence": 0.9, "box": [1, 1, 9, 9]}
    sight = read(json.dumps({"regions": [foreign, good, foreign | {"label": ["coin"]}], "lines": []}))
    assert sight.regions == (Region("coin", (1, 1, 9, 9), 0.9),)
    assert sight.dropped == 2


def test_boxes_are_clipped_to_the_picture_and_grown_to_whole_pixels() -> None:
    sight = read(answer_of(line(box=[-5, 10.2, 10.5, 1080])), TEXT)
    assert sight.lines[0].box_xyxy_px == (0, 10, 11, SIZE)


def test_an_upright_line_of_vertical_text_is_as_high_as_it_is_wide() -> None:
    sight = read(answer_of(line(text="세로쓰기", box=[0, 0, 20, 90]), line(text="1", box=[0, 0, 8, 20])), TEXT)
    assert [item.height_px for item in sight.lines] == [20, 20]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot read this.",
        "[]",
        "[1, 2]",
        "null",
        "{}",
        '{"lines": {}}',
        '{"regions": []}',
        "{" * 50_000,
        "{'" * 30_000,
        '{"lines":[' + "{true]" * 2_000,
        '{"lines":[' + "{}" * 2_000,
        '{"lines":[{"words":"a "b" c","box":[1,2,30,40]}]}',
        '{"lines":[' + "{" + "(:" * 30_000 + "}",
        '{"lines":' + "[" * 100_000,
        '{"lines": ' + "9" * 5000 + "}",
    ],
)
def test_what_is_not_in_the_asked_for_form_is_no_answer(text: str) -> None:
    with pytest.raises(VisionError) as caught:
        read(text, TEXT)
    assert caught.value.kind == "no_answer"


@pytest.mark.parametrize("text", ["", "{", '{"li', "Here is"])
def test_an_answer_cut_before_its_first_item_is_an_empty_cut_sight(text: str) -> None:
    assert read(text, cut="time") == Sight((), (), "time")


def test_lists_that_nobody_asked_for_are_not_read() -> None:
    both = json.dumps({"regions": [{"label": "coin", "confidence": 1, "box": [0, 0, 1, 1]}], "lines": [line()]})
    assert read(both, Wanted(text=False, labels=("coin",))).lines == ()
    assert read(both, TEXT).regions == ()


@given(st.text(max_size=200))
def test_any_text_at_all_gives_an_answer_or_a_clear_error(text: str) -> None:
    parse_answer(text)
    try:
        read(text, cut="connection")
    except VisionError as error:
        assert error.kind == "no_answer"


@given(st.text(max_size=60))
def test_cleaned_text_is_one_printable_line_that_can_be_stored(text: str) -> None:
    cleaned = clean_text(text)
    assert "\n" not in cleaned
    assert cleaned == cleaned.strip() == clean_text(cleaned)
    cleaned.encode("utf-8")


def test_lone_surrogates_in_a_text_do_not_reach_the_line() -> None:
    sight = read('{"lines":[{"text":"a\\ud800b","confidence":1,"box":[0,0,9,9]}]}', TEXT)
    assert sight.lines == (TextLine("ab", (0, 0, 9, 9), 9.0, 1.0),)
