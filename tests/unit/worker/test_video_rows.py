"""Which rows the time line has and which frames the contact sheet: numbers, order, what is left out."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.inspections import COINS, NOTICE, TOO_SHORT, exposures, findings, line, look, looks, text

from sam2_mcp_worker.media.exposure_sheets import MAX_CELLS, MAX_ROWS, CellBox
from sam2_mcp_worker.pipelines.frame_looks import Span, VideoLooks
from sam2_mcp_worker.pipelines.video_cells import MAX_BOXES, choose_cells
from sam2_mcp_worker.pipelines.video_finding_types import VideoFindings
from sam2_mcp_worker.pipelines.video_rows import FINEST_PX, fused, notable, numbered, shown_s, time_line

NOTHING = VideoFindings((), (), (), (), None)


def test_rows_are_numbered_through_labels_phrases_and_texts() -> None:
    drawn = time_line(looks(), findings())
    assert [(row.number, row.kind) for row in drawn.rows] == [
        (1, "label"),
        (2, "label"),
        (3, "phrase"),
        (4, "text"),
        (5, "text"),
    ]
    assert drawn.rows[0].sure == ((0.0, 2.0),) and drawn.rows[0].note == "2.00 s"
    assert drawn.rows[1].unknown == ((1, 2),) and drawn.rows[1].note == "cannot tell"
    assert drawn.rows[2].possible == ((0.75, 1.5),) and drawn.rows[2].note == "0.00-0.75 s, too short"
    assert drawn.rows_left_out == 0


def test_the_headline_says_what_was_not_read() -> None:
    line_of = time_line(looks(complete=False), findings())
    assert line_of.headline == (
        "4 frames looked at, one every 0.5 s and at cuts; 1 failed; 0.30 s cannot be read; 0.50 s not read yet"
    )
    assert line_of.unreached == ((2.5, 3.0),) and line_of.cuts_s == (1.0,)


def test_of_many_lines_those_that_break_a_rule_have_rows_and_the_rest_is_counted() -> None:
    texts = tuple(
        text(
            str(i),
            f"line {i}",
            NOTICE,
            exposures((i, i, i + 1 + i % 7, i + 2)),
            checks=(TOO_SHORT,) if i == 333 else (),
        )
        for i in range(500)
    )
    drawn = time_line(looks(), replace(findings(), texts=texts))
    assert len(drawn.rows) == MAX_ROWS
    assert drawn.rows_left_out == 503 - MAX_ROWS
    shown = [row for row in drawn.rows if row.kind == "text"]
    assert "line 333" in [row.name for row in shown]
    assert [row.sure[0][0] for row in shown] == sorted(row.sure[0][0] for row in shown)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9), st.booleans()), max_size=30), st.integers(0, 12))
def test_a_choice_of_lines_never_drops_a_broken_one_for_a_good_one(raw: list[tuple[int, int, bool]], most: int) -> None:
    texts = [
        (number, text(str(number), "x", NOTICE, exposures((a, a, a + b, a + b)), checks=(TOO_SHORT,) if bad else ()))
        for number, (a, b, bad) in enumerate(raw)
    ]
    chosen = notable(texts, most)
    assert len(chosen) == min(most, len(texts))
    bad = sum(bool(one.checks) for _, one in texts)
    assert sum(bool(one.checks) for _, one in chosen) == min(most, bad)


def test_a_time_is_told_once_where_sure_and_possible_agree() -> None:
    assert shown_s(exposures((1, 1, 3, 3))) == "2.00 s"
    assert shown_s(exposures((0.5, 1, 3, 3.25))) == "2.00-2.75 s"


def test_the_sheet_shows_every_finding_where_it_is_seen_best_and_every_scene() -> None:
    cells = choose_cells(looks(), findings())
    assert [cell.time_s for cell in cells] == [0.0, 1.0, 2.0]
    assert CellBox("label", 1, COINS) in cells[0].boxes and CellBox("text", 4, (10, 10, 90, 30)) in cells[0].boxes
    assert {(box.kind, box.number) for box in cells[1].boxes} == {("label", 1), ("phrase", 3), ("text", 5)}
    assert CellBox("phrase", 3, NOTICE) in cells[1].boxes


def test_a_frame_like_an_earlier_one_is_shown_once_with_what_was_found_in_both() -> None:
    frames = (look(0.0, lines=(line("a"),)), look(0.5, same_as_s=0.0, lines=(line("a"),)))
    found = findings()
    place = replace(found.phrases[0].places[0], time_s=0.5)
    phrase = replace(found.phrases[0], place=place, smallest=place, places=(place,))
    (cell,) = choose_cells(looks(frames=frames), replace(NOTHING, phrases=(phrase,)))
    assert cell.time_s == 0.0
    assert CellBox("phrase", 1, NOTICE) in cell.boxes


def test_nothing_read_has_no_sheet() -> None:
    failed = (look(0.0, failed="damaged", regions=None),)
    assert choose_cells(looks(frames=failed), NOTHING) == []
    assert choose_cells(looks(frames=()), findings()) == []


def test_a_long_video_has_a_sheet_of_all_its_parts() -> None:
    frames = tuple(look(float(i), kind="after_cut" if i % 3 == 0 else "grid") for i in range(900))
    long = VideoLooks(Span(0, 900), 1.0, True, 320, 180, frames)
    cells = choose_cells(long, NOTHING)
    assert len(cells) == MAX_CELLS
    assert cells[0].time_s == 0 and cells[-1].time_s > 800
    crowd = look(0.0, lines=tuple(line(str(i)) for i in range(99)))
    texts = tuple(text(str(i), str(i), NOTICE, exposures((0, 0, 0, 0))) for i in range(99))
    (cell,) = choose_cells(looks(frames=(crowd,)), replace(NOTHING, texts=texts))
    assert len(cell.boxes) == MAX_BOXES


def test_numbers_are_those_of_the_findings_order() -> None:
    named = numbered(findings())
    assert [number for number, _ in (*named.labels, *named.phrases, *named.texts)] == [1, 2, 3, 4, 5]


@given(st.lists(st.tuples(st.floats(0, 900), st.floats(0, 9)), max_size=40), st.floats(0, 20))
def test_joined_spans_cover_what_they_covered_and_leave_only_gaps_that_can_be_seen(
    raw: list[tuple[float, float]], gap_s: float
) -> None:
    spans = sorted((start_s, start_s + length_s) for start_s, length_s in raw)
    joined = fused(spans, gap_s)
    assert all(any(a <= start_s and end_s <= b for a, b in joined) for start_s, end_s in spans)
    assert all(after[0] - before[1] >= gap_s for before, after in itertools.pairwise(joined))
    assert {a for a, _ in joined} <= {a for a, _ in spans} and {b for _, b in joined} <= {b for _, b in spans}


def test_an_hour_of_short_showings_has_no_more_bars_than_pixels() -> None:
    often = exposures(*((i / 2, i / 2, i / 2 + 0.1, i / 2 + 0.2) for i in range(7200)))
    hour = VideoLooks(Span(0, 3600), 0.5, True, 320, 180, (look(0.0),))
    drawn = time_line(hour, replace(NOTHING, texts=(text("a", "a", NOTICE, often),)))
    assert len(drawn.rows[0].sure) + len(drawn.rows[0].possible) <= 2 * FINEST_PX
