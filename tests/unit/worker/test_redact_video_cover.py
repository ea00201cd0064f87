"""Where phrases are covered in a video: until the neighbours that lack them, and on the way between two places."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.engines.ports import Box, TextLine
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, Span, VideoLooks
from sam2_mcp_worker.pipelines.redact_video_cover import PhraseCover, plan_cover

SIZE = (1000, 600)
STEP_S = 0.25
PHRASE = "홍길동 고객님"


def line(text: str, box: Box) -> TextLine:
    return TextLine(text, box, float(box[3] - box[1]), 0.9)


def looks(*frames: FrameLook, end_s: float | None = None) -> VideoLooks:
    end = end_s if end_s is not None else frames[-1].time_s + STEP_S
    return VideoLooks(Span(0.0, end), STEP_S, True, *SIZE, frames)


def frame(number: int, *lines: TextLine, failed: str = "") -> FrameLook:
    return FrameLook(number * STEP_S, "grid", lines=lines, failed=failed)


def covered(cover: PhraseCover, box: tuple[float, float, float, float], time_s: float) -> bool:
    """Whether one cover that is there then holds the box, as far as it lies in the picture."""
    x0, y0, x1, y1 = max(0, box[0]), max(0, box[1]), min(SIZE[0], box[2]), min(SIZE[1], box[3])
    if x0 >= x1 or y0 >= y1:
        return True
    return any(
        one.start_s <= time_s <= one.end_s
        and (one.box_xyxy_px[0] <= x0 and one.box_xyxy_px[1] <= y0)
        and (one.box_xyxy_px[2] >= x1 and one.box_xyxy_px[3] >= y1)
        for one in cover.covers
    )


@given(
    st.integers(350, 550),
    st.integers(220, 330),
    st.integers(-180, 180),
    st.integers(-110, 110),
    st.integers(0, 8),
    st.integers(1, 8),
)
def test_a_line_that_moves_evenly_is_covered_wherever_it_is(
    x: int, y: int, x_per_s: int, y_per_s: int, first: int, count: int
) -> None:
    """From the sample before it is first read to the one behind its last reading."""

    def at(time_s: float) -> tuple[float, float, float, float]:
        dx, dy = x_per_s * (time_s - first * STEP_S), y_per_s * (time_s - first * STEP_S)
        return x + dx, y + dy, x + dx + 90, y + dy + 30

    def seen(number: int) -> tuple[TextLine, ...]:
        x0, y0, x1, y1 = (round(edge) for edge in at(number * STEP_S))
        return (line(PHRASE, (x0, y0, x1, y1)),) if first <= number < first + count else ()

    cover = plan_cover([PHRASE], looks(*(frame(number, *seen(number)) for number in range(18))))
    last_s = (first + count - 1) * STEP_S
    moves = x_per_s or y_per_s
    from_s = last_s if moves and count == 1 else max(0.0, (first - 1) * STEP_S)
    to_s = last_s if moves and count == 1 else last_s + STEP_S
    for share in range(41):
        time_s = from_s + (to_s - from_s) * share / 40
        assert covered(cover, at(time_s), time_s), time_s
    assert all(from_s - STEP_S <= one.start_s <= one.end_s <= to_s + STEP_S for one in cover.covers)


def test_a_still_line_is_one_cover_from_the_frame_before_to_the_frame_behind() -> None:
    box = (100, 100, 200, 130)
    frames = [frame(0), frame(1, line(PHRASE, box)), frame(2, line(PHRASE, (101, 100, 200, 131))), frame(3), frame(4)]
    cover = plan_cover(["고객님"], looks(*frames))
    assert covered(cover, box, 0.0) and covered(cover, box, 0.75)
    assert not any(one.start_s <= 0.9 <= one.end_s for one in cover.covers)
    (showing,) = cover.showings
    assert (showing.start_s, showing.end_s, showing.match.kind) == (0.0, 0.75, "exact")
    assert cover.places[0] == {"box_xyxy_px": list(box), "time_s": 0.25}


def test_frames_that_could_not_be_read_are_covered_between_those_that_were() -> None:
    box = (100, 100, 200, 130)
    frames = [
        frame(0),
        frame(1, failed="damaged"),
        frame(2, line(PHRASE, box)),
        frame(3, failed="damaged"),
        frame(4, failed="damaged"),
        frame(5),
    ]
    cover = plan_cover([PHRASE], looks(*frames))
    for number in range(6):
        assert covered(cover, box, number * STEP_S)


def test_a_phrase_at_the_end_is_covered_to_the_end_and_two_showings_are_told_apart() -> None:
    box = (100, 100, 200, 130)
    frames = [frame(0, line(PHRASE, box)), frame(1), frame(2), frame(3, line("홍길등 고객님", box))]
    cover = plan_cover([PHRASE, "보험료"], looks(*frames, end_s=1.2))
    assert [(one.start_s, one.end_s, one.match.kind) for one in cover.showings] == [
        (0.0, 0.25, "exact"),
        (0.5, 1.2, "near"),
    ]
    assert covered(cover, box, 1.2) and not covered(cover, box, 0.4)


def test_two_places_of_a_phrase_are_both_covered_and_nothing_asked_is_nothing() -> None:
    one, two = (100, 100, 200, 130), (500, 400, 600, 430)
    frames = [frame(0, line(PHRASE, one), line(PHRASE, two)), frame(1, line(PHRASE, two))]
    cover = plan_cover([PHRASE], looks(*frames))
    assert covered(cover, one, 0.1) and covered(cover, two, 0.1) and covered(cover, two, 0.4)
    assert plan_cover(["x"], looks(frame(0))).covers == ()
    assert plan_cover([PHRASE], looks(frame(0, failed="damaged"))).showings == ()


def test_a_line_outside_of_the_picture_needs_no_cover() -> None:
    cover = plan_cover([PHRASE], looks(frame(0, line(PHRASE, (1200, 10, 1300, 40)))))
    assert cover.covers == ()
