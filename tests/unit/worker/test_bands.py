"""Bands: over the calls of one request every line of a picture comes exactly once, whatever is missing in between."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.cursors import decode_cursor, encode_cursor
from sam2_mcp_worker.engines.ports import TextLine
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.bands import Place, deliver, from_cursor, settled_until_px, to_cursor

KEY = "ab" * 32
ROWS, ROW_PX, OVERLAP_PX = 6, 100, 20
HEIGHT_PX = ROWS * ROW_PX
TILES = [(0, max(0, row * ROW_PX - OVERLAP_PX), 500, (row + 1) * ROW_PX) for row in range(ROWS)]


def line(number: int, top: int) -> TextLine:
    return TextLine(f"line {number}", (10, top, 400, min(HEIGHT_PX, top + 12)), 12.0, 0.9)


def visible(lines: list[TextLine], done: set[int]) -> list[TextLine]:
    """Lines that lie whole in a tile that is read; tiles are numbered from 1."""
    return [
        each
        for each in lines
        if any(TILES[n - 1][1] <= each.box_xyxy_px[1] and each.box_xyxy_px[3] <= TILES[n - 1][3] for n in done)
    ]


@given(
    st.lists(st.integers(0, HEIGHT_PX - 13), max_size=30, unique=True),
    st.integers(1, 7),
    st.randoms(use_true_random=False),
)
def test_every_line_comes_once_though_tiles_settle_late_and_vanish(tops: list[int], fits: int, random: Any) -> None:
    lines = [line(number, top) for number, top in enumerate(sorted(tops))]
    lines = visible(lines, set(range(1, ROWS + 1)))
    done: set[int] = set()
    seen: list[str] = []
    cursor: str | None = ""
    for _ in range(300):
        if random.random() < 0.1:
            done = set()  # a restart without the cache
        done |= {n for n in range(1, ROWS + 1) if random.random() < 0.4}
        unreached = [n for n in range(1, ROWS + 1) if n not in done]
        result = deliver(
            visible(lines, done),
            from_cursor("read_text", KEY, cursor or "", ROWS),
            settled_px=settled_until_px(TILES, unreached, HEIGHT_PX),
            height_px=HEIGHT_PX,
            failed=frozenset(),
            fit=lambda given: min(len(given), fits),
        )
        seen += [each.text for each in result.lines]
        cursor = to_cursor("read_text", KEY, result.next_place)
        if cursor is None:
            break
    assert cursor is None
    assert sorted(seen) == sorted(each.text for each in lines)


def test_a_tile_that_was_delivered_as_failed_is_named_in_the_cursor() -> None:
    result = deliver([], Place(), settled_px=200, height_px=600, failed=frozenset({1}), fit=len)
    cursor = to_cursor("read_text", KEY, result.next_place)
    assert cursor is not None
    assert from_cursor("read_text", KEY, cursor, ROWS) == Place(200, None, 0, frozenset({1}))


def test_a_place_at_the_foot_has_all_lines_behind_it_and_a_cursor_keeps_what_else_it_carries() -> None:
    foot = Place(400, failed=frozenset({2}))
    delivery = deliver(
        [line(1, 10)], foot, settled_px=200, height_px=400, failed=frozenset(), fit=lambda lines: len(lines)
    )
    assert delivery.lines == () and delivery.next_place is None
    cursor = to_cursor("tool", "key", foot, {"r": [1, 2]})
    assert cursor is not None
    assert from_cursor("tool", "key", cursor, 3) == foot
    assert decode_cursor(cursor, "tool", "key")["r"] == [1, 2]


def test_nothing_settled_gives_the_same_place_again() -> None:
    place = Place(100, 300, 2)
    assert deliver([], place, settled_px=200, height_px=600, failed=frozenset(), fit=len).next_place == place
    assert deliver([], Place(), settled_px=0, height_px=600, failed=frozenset(), fit=len).next_place == Place()


@pytest.mark.parametrize(
    "state",
    [{}, {"y": "a", "s": 0, "f": ""}, {"y": 0, "s": 0, "f": "9"}, {"y": 0, "s": [], "f": ""}, {"y": 0, "s": 0, "f": 5}],
)
def test_a_cursor_with_impossible_content_is_damaged(state: dict[str, Any]) -> None:
    with pytest.raises(WorkerError, match="without cursor"):
        from_cursor("read_text", KEY, encode_cursor("read_text", KEY, state), ROWS)
