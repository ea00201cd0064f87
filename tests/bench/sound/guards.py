"""What Whisper itself writes over sound without words, and whether checks/hearing.py tells it from what was said.

    python -m tests.bench.sound.guards [--check] [--json]

Voice activity is left out on purpose: silence, noise, tones and speech played backwards go straight to the model, with
the language detected and forced. A row is one sound: no-speech and mean log probability, compression ratio of the
text, and what was decided. With --check it ends with 1 when words over such sound are believed, or a sentence is not.
"""

from __future__ import annotations

import sys
import tempfile
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from tests.bench.claude.command import finish, options
from tests.fakes.speech_server import wav_bytes
from tests.fakes.speech_sounds import Sound, join, music, noise, said, silence

from sam2_mcp_worker.checks.hearing import Said, judge
from sam2_mcp_worker.engines.whisper_weights import find_weights
from sam2_mcp_worker.settings import Settings

SENTENCES = (
    "The premium may rise when the contract is renewed.",
    "Please read the terms and conditions before you sign.",
    "This policy does not cover illness that began before the contract.",
    "The surrender value may be lower than the premiums that were paid.",
)
THREADS = 2


@dataclass(frozen=True)
class Row:
    """One segment that Whisper wrote."""

    sound: str
    language: str
    spoken: bool
    no_speech_prob: float
    mean_log_prob: float
    compression_ratio: float
    text: str
    decided: str


def sounds() -> list[tuple[str, Sound, bool]]:
    """Name, sound, whether words are said in it."""
    backwards = said(SENTENCES[0])
    backwards = replace(backwards, samples=np.ascontiguousarray(backwards.samples[::-1]), spoken=())
    spoken = [
        (f"sentence {number}", join(silence(0.3), said(text), silence(0.3)), True)
        for number, text in enumerate(SENTENCES)
    ]
    unspoken = [
        ("silence", silence(10), False),
        ("noise -20 dBFS", noise(10, level_dbfs=-20), False),
        ("noise -50 dBFS", noise(10, level_dbfs=-50), False),
        ("music", music(10), False),
        ("backwards", backwards, False),
    ]
    return spoken + unspoken


def measure(folder: Path) -> list[Row]:
    from sam2_mcp_worker.engines import whisper_child

    weights = find_weights(Settings(data_dir=folder))
    assert weights is not None, "the extra [whisper-base] is not installed"
    whisper_child.setup({"weights": weights, "threads": THREADS})
    rows = []
    for name, sound, spoken in sounds():
        path = folder / "piece.wav"
        path.write_bytes(wav_bytes(sound.samples.astype("<i2").tobytes()))
        for language in ("en",) if spoken else (None, "en", "ko"):
            answer = whisper_child.transcribe({"path": str(path), "language": language})
            rows += [
                _row(name, language or f"{answer['language']}?", spoken, Said(**one), sound) for one in answer["said"]
            ]
    return rows


def _row(name: str, language: str, spoken: bool, one: Said, sound: Sound) -> Row:
    believed, lost = judge([one], sound.length_s)
    data = one.text.encode()
    decided = "believed" if believed else lost[0].reason
    probabilities = (round(one.no_speech_prob or 0, 2), round(one.mean_log_prob or 0, 2))
    return Row(
        name, language, spoken, *probabilities, round(len(data) / len(zlib.compress(data)), 1), one.text, decided
    )


def main() -> int:
    arguments = options("guards", "sound").parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder))
    wrong = [
        f"{row.sound} ({row.language}): {row.decided}: {row.text[:60]!r}"
        for row in rows
        if (row.decided == "believed") != row.spoken
    ]
    shown = "\n".join(
        f"| {row.sound} | {row.language} | {row.no_speech_prob} | {row.mean_log_prob} | {row.compression_ratio} | "
        f"{row.decided[:60]} | {row.text.strip()[:40]} |"
        for row in rows
    )
    return finish(arguments, [asdict(row) for row in rows], shown, wrong)


if __name__ == "__main__":
    sys.exit(main())
