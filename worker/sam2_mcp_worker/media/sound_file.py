"""Opens the sound of a file from outside in the scan child, behind the locks of video_file.py.

Owns which track is listened to, the zero of its clock, and what is said of files without sound that can be heard.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.stream import Discard

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.audio import UNTIMED
from sam2_mcp_worker.media.video_file import Wording, best_picture_track, open_container, picture_tracks

SOUND = Wording(
    "recording",
    "sound_damaged",
    "unsupported_sound",
    "WAV, MP3, M4A, AAC, FLAC, Ogg, Opus, WMA and the sound of MP4, MOV, WebM, MKV, AVI, MPEG-TS",
    "MP3 or WAV",
)


# Those that do not state how long they are: what libavformat tells is a guess from the first packets.
_UNSTATED = ("aac", "ac3", "eac3", "amr", "dts", "mpegts", "mpeg")


@dataclass(frozen=True, slots=True)
class OpenSound:
    """An open file and its best sound track, the `number`th of its sound tracks (from 1).

    `zero_s` is the time stamp that is 0 on our clock.
    """

    container: InputContainer
    stream: AudioStream
    number: int
    zero_s: Fraction
    has_video: bool

    @property
    def container_name(self) -> str:
        """The shortest name of the container."""
        return self.container.format.name.split(",")[0]

    @property
    def untimed(self) -> bool:
        """Whether nobody knows how much time was lost where the file is damaged."""
        return self.container_name in UNTIMED

    @property
    def stated_end_s(self) -> float | None:
        """Where the file says, or lets us guess, that its sound ends."""
        stream = self.stream
        if stream.duration and stream.time_base:
            return float(((stream.start_time or 0) + stream.duration) * stream.time_base - self.zero_s)
        return self.container.duration / av.time_base if self.container.duration else None

    @property
    def states_end(self) -> bool:
        """Whether `stated_end_s` is no guess."""
        return bool(self.stream.duration) and self.container_name not in _UNSTATED


@contextmanager
def open_sound(path: Path) -> Iterator[OpenSound]:
    """The file with its best sound track; all other tracks are passed over unread where the container allows it.

    Raises:
        WorkerError: sound_damaged, unsupported_sound, no_audio_stream.
    """
    with path.open("rb") as file, open_container(file, SOUND) as container:
        stream = _sound_track(container)
        pictures = best_picture_track(container) or next(iter(picture_tracks(container)), None)
        clock = stream if pictures is None else pictures
        zero_s = (clock.start_time or 0) * (clock.time_base or Fraction(0))
        for other in container.streams:
            if other.index != stream.index:
                other.discard = Discard.all
        yield OpenSound(container, stream, 1 + container.streams.audio.index(stream), zero_s, pictures is not None)


def sound_encrypted() -> WorkerError:
    """The error for sound that only a licence opens."""
    return WorkerError(
        "sound_encrypted",
        "the sound of this file is encrypted (DRM)",
        next_step="Use a copy that plays without a licence",
    )


def _sound_track(container: InputContainer) -> AudioStream:
    known = [track for track in container.streams.audio if track.codec_context is not None]
    if known:
        best = container.streams.best("audio")
        return best if isinstance(best, AudioStream) and best in known else known[0]
    if container.streams.audio:
        raise WorkerError(
            "unsupported_sound",
            f"nothing here decodes the sound of this file ({container.format.long_name})",
            next_step="Convert it to MP3 or WAV",
        )
    held = "pictures and no sound" if picture_tracks(container) else "neither pictures nor sound"
    raise WorkerError(
        "no_audio_stream",
        f"the file ({container.format.long_name}) holds {held}",
        next_step="Send a file that has a sound track; inspect_video reads what is to be seen",
    )
