"""From what an engine tells to a Hearing: what is believed of it, and what is not known."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from sam2_mcp_worker.checks.hearing import Said, judge
from sam2_mcp_worker.engines.speech_ports import Hearing, SpokenSegment, Unheard


def hearing_of(
    said: Iterable[Said], duration_s: float, *, language: str | None, times: Literal["segments", "piece"] = "segments"
) -> Hearing:
    """The hearing of a piece of that length."""
    believed, lost = judge(said, duration_s)
    return Hearing(
        segments=tuple(SpokenSegment(one.start_s, one.end_s, one.text, _confidence(one)) for one in believed),
        unheard=tuple(Unheard(span.start_s, span.end_s, span.reason) for span in lost),
        language=language,
        times=times,
    )


def _confidence(one: Said) -> float | None:
    """The geometric mean of the tokens' probabilities, where the engine tells it."""
    return None if one.mean_log_prob is None else round(math.exp(min(0.0, one.mean_log_prob)), 3)
