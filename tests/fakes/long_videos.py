"""Long videos for little work: a short one over and over, packet by packet, nothing decoded or encoded again."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av


def repeat_video(source: Path, path: Path, times: int, length_s: Fraction) -> Path:
    """`times` copies of the picture track of `source`, each `length_s` after the one before. Begins with a keyframe."""
    with av.open(str(source)) as given, av.open(str(path), "w") as out:
        track = given.streams.video[0]
        stream: Any = out.add_stream_from_template(track)
        assert track.time_base is not None
        shift = length_s / track.time_base
        assert shift.denominator == 1, "the length is no whole number of ticks: copies would drift"
        for number in range(times):
            given.seek(0)
            for packet in given.demux(track):
                if packet.pts is None or packet.dts is None:  # the one that ends the file
                    continue
                packet.pts, packet.dts = packet.pts + number * int(shift), packet.dts + number * int(shift)
                packet.stream = stream
                out.mux(packet)
    return path
