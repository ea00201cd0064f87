"""Finds out that a container's reader passed over a damaged part in silence. Pure: places, sizes and times of packets.

libavformat looks for the next cluster of a damaged Matroska file and says nothing; the frame before would seem to stay
on screen for all of the lost time. In a whole file one packet begins right behind the other.
"""

from __future__ import annotations

# Containers whose packets of all tracks lie in the file without anything large between them.
WITHOUT_HOLES = ("matroska",)
# Headers of blocks and clusters between two packets took 6 to 24 bytes (H.264, HEVC, VP9, with and without sound); of
# files with a scratch the least was 392.
HEADER_BYTES = 128
# Bytes may be missing between two packets of the sound alone: a frame was only lost where one should have come.
MORE_THAN_A_FRAME = 1.5


class ByteHoles:
    """Told of the packets of all tracks in the order in which they are stored."""

    def __init__(self) -> None:
        self._end: int | None = None
        self._hole = False  # since the last packet of the pictures
        self.latest: int | None = None
        """The greatest time of a picture by now."""

    def pass_by(self, position: int | None, size: int) -> None:
        """A packet of any track lies here."""
        if position is None or position < 0 or not size:
            return
        self._hole |= self._end is not None and position - self._end > HEADER_BYTES
        self._end = position + size

    def before_picture(self, time: int | None, duration: int | None) -> bool:
        """Whether frames are missing in front of the packet passed last, which is one of the pictures.

        Args:
            time: when its frame is shown, in ticks of its track.
            duration: of its frame; None or 0 where the file does not tell.
        """
        latest, hole, self._hole = self.latest, self._hole, False
        if time is None:
            return hole
        self.latest = time if latest is None else max(latest, time)
        return hole and not (latest is not None and duration and time - latest <= MORE_THAN_A_FRAME * duration)
