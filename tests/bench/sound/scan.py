"""What finding speech costs: decoding and voice activity of a recording in which nearly all is speech.

    python -m tests.bench.sound.scan [--minutes 10] [--check] [--json]

Processor seconds for an hour of sound beside plain PyAV decoding, and the memory after each stretch. With `--check` it
ends with 1 when memory grows with the length, or an hour takes more than MOST_CPU_S_PER_HOUR.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import av
from tests.bench.claude.command import finish, options, rows_of
from tests.bench.claude.scene import resident_mb
from tests.fakes.speech_sounds import join, repeat_sound, said, silence, write_sound

from sam2_mcp_worker.media import audio, audio_scan_child
from sam2_mcp_worker.media.audio import SAMPLE_RATE_HZ, SoundFacts, stretch_count
from sam2_mcp_worker.media.sound_file import open_sound
from sam2_mcp_worker.media.sound_reader import LapReader

# 155 s of voice activity and 15 s of decoding were measured on a busy core.
MOST_CPU_S_PER_HOUR = 300.0
# Two laps of samples, as floats for a moment; a leak of one lap a stretch would be 2 MB each.
MOST_GROWTH_MB = 24
_TEXTS = (
    "insurance covers accidents at home and on the way",
    "the premium is nine thousand won a month for ten years",
    "please read the terms and conditions before you sign",
    "coverage may be limited for risks that were known before",
)


def recording(folder: Path, minutes: float) -> Path:
    """Speech with short pauses, as AAC."""
    sound = join(*(part for text in _TEXTS for part in (said(text), silence(0.6))))
    once = write_sound(folder / "once.m4a", sound, codec="aac", rate_hz=48_000)
    path = folder / "long.m4a"
    repeat_sound(once, path, max(1, round(minutes * 60 / sound.length_s)))
    return path


def plain_decoding_s(path: Path) -> float:
    """Processor seconds of PyAV decoding and resampling, linear."""
    begun_s = time.process_time()
    resampler = av.AudioResampler(format="s16", layout="mono", rate=SAMPLE_RATE_HZ)
    with av.open(path) as container:
        for frame in container.decode(audio=0):
            resampler.resample(frame)
    return time.process_time() - begun_s


def laps_s(path: Path, facts: SoundFacts) -> float:
    """Processor seconds of our decoding, without anybody listening."""
    begun_s = time.process_time()
    count = stretch_count(facts)
    lap, end = round(audio.STRETCH_S * SAMPLE_RATE_HZ), round(facts.end_s * SAMPLE_RATE_HZ)
    with open_sound(path) as sound:
        reader = LapReader(sound, path, 0, lap, count, end)
        for _ in range(count):
            reader.read()
    return time.process_time() - begun_s


def stretches(path: Path, facts: SoundFacts, folder: Path) -> tuple[float, list[float], int]:
    """Processor seconds of all stretches, the memory after each in MB, and how many pieces there were."""
    begun_s, memory_mb, pieces = time.process_time(), [], 0
    for number in range(stretch_count(facts)):
        params = audio.stretch_params(path, facts, number, folder)
        for piece in audio_scan_child.sound_stretch(params)["pieces"]:
            (folder / piece["name"]).unlink()
            pieces += 1
        memory_mb.append(resident_mb([os.getpid()]))
    return time.process_time() - begun_s, memory_mb, pieces


def main() -> int:
    """Measure and print."""
    parser = options("scan", "sound")
    parser.add_argument("--minutes", type=float, default=10.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = recording(folder, arguments.minutes)
        facts = SoundFacts(**audio_scan_child.sound_probe({"path": str(path), "max_s": 14_400.0}))
        hour = 3600 / (facts.end_s - facts.begins_s)
        plain_s, decoding_s = plain_decoding_s(path), laps_s(path, facts)
        scanning_s, memory_mb, pieces = stretches(path, facts, folder)
        audio_scan_child.close_scans()
    figures = {
        "minutes of sound": round(60 / hour, 1),
        "pieces": pieces,
        "plain PyAV decoding, CPU s per hour": round(plain_s * hour, 1),
        "decoding into laps, CPU s per hour": round(decoding_s * hour, 1),
        "with voice activity and pieces, CPU s per hour": round(scanning_s * hour, 1),
        "times faster than real time": round(3600 / (scanning_s * hour), 1),
        "memory after the second stretch, MB": round(memory_mb[min(1, len(memory_mb) - 1)]),
        "most memory later, MB": round(max(memory_mb[1:] or memory_mb)),
    }
    short = []
    if scanning_s * hour > MOST_CPU_S_PER_HOUR:
        short.append(f"an hour takes {scanning_s * hour:.0f} CPU s, more than {MOST_CPU_S_PER_HOUR:.0f}")
    if max(memory_mb[1:] or memory_mb) - memory_mb[min(1, len(memory_mb) - 1)] > MOST_GROWTH_MB:
        short.append(f"memory grew by more than {MOST_GROWTH_MB} MB: {memory_mb}")
    return finish(arguments, figures, rows_of(figures), short)


if __name__ == "__main__":
    sys.exit(main())
