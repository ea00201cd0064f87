"""Packets in a file: where one is not right behind the other, frames may be missing."""

from __future__ import annotations

import pytest

from sam2_mcp_worker.media.byte_holes import HEADER_BYTES, ByteHoles


@pytest.mark.parametrize(
    ("hole_bytes", "time", "duration", "missing"),
    [
        (HEADER_BYTES, 900, 40, False),
        (HEADER_BYTES + 1, 900, 40, True),
        (HEADER_BYTES + 1, 140, 40, False),  # the next frame: only sound is missing
        (HEADER_BYTES + 1, 160, 40, False),
        (HEADER_BYTES + 1, 161, 40, True),
        (HEADER_BYTES + 1, 140, None, True),
        (HEADER_BYTES + 1, 60, 40, False),  # shown before the others
        (HEADER_BYTES + 1, None, 40, True),
    ],
)
def test_frames_are_missing_where_bytes_and_time_are(
    hole_bytes: int, time: int | None, duration: int | None, missing: bool
) -> None:
    holes = ByteHoles()
    holes.pass_by(1000, 50)
    assert not holes.before_picture(100, 40)
    assert not holes.before_picture(60, 40)  # stored later, shown before
    holes.pass_by(1050 + hole_bytes, 50)  # may be one of the sound, then the next one tells
    holes.pass_by(1100 + hole_bytes, 50)
    assert holes.before_picture(time, duration) == missing
    holes.pass_by(1150 + hole_bytes, 50)
    assert not holes.before_picture(2000, duration)


def test_packets_without_a_place_tell_nothing_and_laced_ones_lie_at_one_place() -> None:
    holes = ByteHoles()
    for position, size in ((1000, 50), (None, 50), (-1, 9), (5000, 0), (1000, 50), (1060, 10)):
        holes.pass_by(position, size)
    assert not holes.before_picture(100, 40)
