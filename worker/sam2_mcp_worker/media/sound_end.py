"""Where a file claims that its sound ends, to be compared with where it does: a file that was cut off says so itself.

Owns what of a header is a claim and what is a guess of libavformat's. A guess says nothing.
"""

from __future__ import annotations

import time
from pathlib import Path

import av

from sam2_mcp_worker.media.sound_file import SOUND, OpenSound
from sam2_mcp_worker.media.video_file import open_container

# A file that ends this much before it says it does was cut off; video_child.py has the same for pictures.
_CUT_OFF_S = 0.5
_CUT_OFF_SHARE = 0.02
# These state the length of the file, not of each track.
_FILE_LENGTH = ("matroska", "flv")
# An hour of packets of all tracks is looked through in 1 s.
_LOOK_S = 4.0
# What programs write as the size of a WAV while they do not know it yet.
_UNKNOWN_SIZE = 0x7FFFF000
# Of the bytes that libavformat takes for sound, by which it guesses how long an MP3 is.
_GUESS_SHARE = 0.02
# Of an MP3 (a frame of Layer II at 384 kbit/s has 1,728): what is larger is damage that was passed over.
LARGEST_FRAME_BYTES = 2000


def cut_off_at_s(sound: OpenSound, path: Path, end_s: float, sound_bytes: int, first_byte: int) -> float | None:
    """Where the file claims that its sound ends, if that is well behind `end_s`, where it does; else None.

    The packets of the track that are no larger than LARGEST_FRAME_BYTES have `sound_bytes`; the first one lies at
    `first_byte` of the file.
    """
    claimed_s = _claimed_end_s(sound, path, end_s)
    if claimed_s is None or not _well_behind(claimed_s, end_s):
        return None
    if sound.container_name in _FILE_LENGTH and not _well_behind(claimed_s, _all_tracks_end_s(sound, path)):
        return None
    if sound.container_name == "mp3" and _guessed(sound, claimed_s, sound_bytes, first_byte):
        return None
    return claimed_s


def _well_behind(claimed_s: float, end_s: float) -> bool:
    return claimed_s - end_s > max(_CUT_OFF_S, _CUT_OFF_SHARE * claimed_s)


def _claimed_end_s(sound: OpenSound, path: Path, end_s: float) -> float | None:
    if sound.container_name == "wav":
        return _wav_end_s(path, end_s)
    if sound.container_name in _FILE_LENGTH and sound.container.duration:
        return sound.container.duration / av.time_base - float(sound.zero_s)
    return sound.stated_end_s if sound.states_end else None


def _wav_end_s(path: Path, end_s: float) -> float | None:
    """By the size that its header claims; libavformat forgets that where the file is shorter."""
    with path.open("rb") as file:
        head = file.read(8)
    told, held = int.from_bytes(head[4:], "little") + len(head), path.stat().st_size
    return end_s * told / held if head[:4] == b"RIFF" and held < told < _UNKNOWN_SIZE else None


def _all_tracks_end_s(sound: OpenSound, path: Path) -> float:
    """When the last packet of any track ends, on the clock of the sound; for ever where they are too many."""
    stops_s, end_s = time.monotonic() + _LOOK_S, 0.0
    with path.open("rb") as file, open_container(file, SOUND) as container:
        try:
            for packet in container.demux():
                if packet.pts is not None and packet.time_base:
                    end_s = max(end_s, float((packet.pts + (packet.duration or 0)) * packet.time_base - sound.zero_s))
                if time.monotonic() > stops_s:
                    return float("inf")
        except (av.FFmpegError, OSError, IndexError):  # the last: PyAV, of a track that was not announced
            pass
    return end_s


def _guessed(sound: OpenSound, claimed_s: float, sound_bytes: int, first_byte: int) -> bool:
    """Whether the length is only the size of the file by the rate of its first frame: false where the rate varies."""
    held_bytes = sound.container.size - first_byte
    guess_bytes = claimed_s * (sound.stream.codec_context.bit_rate or 0) / 8
    # Where bytes were passed over, sound is missing whatever was guessed.
    return all(abs(size - held_bytes) <= _GUESS_SHARE * held_bytes for size in (guess_bytes, sound_bytes))
