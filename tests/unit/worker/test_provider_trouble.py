"""Trouble with a vision provider is kept for a while, for the provider or for one model, and then tried again."""

from __future__ import annotations

from sam2_mcp_worker.engines.provider_errors import Kind
from sam2_mcp_worker.engines.provider_trouble import KEPT_S, UNREACHABLE_KEPT_S, TroubleMemory
from sam2_mcp_worker.engines.vision_errors import VisionError


class Clock:
    """Seconds that the test turns."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def kept_s(kind: Kind) -> float:
    """For how long an error of this kind speaks for the provider."""
    clock = Clock()
    memory: TroubleMemory[VisionError] = TroubleMemory("provider", clock)
    memory.remember("fast", VisionError(kind, "it failed"))
    while memory.of_provider() is not None:
        clock.now_s += 1
    return clock.now_s - 100.0


def test_what_concerns_the_provider_is_kept_and_tried_again_later() -> None:
    assert kept_s("auth") == kept_s("credit") == kept_s("gateway") == KEPT_S
    assert kept_s("unreachable") == UNREACHABLE_KEPT_S


def test_what_concerns_one_picture_or_passes_by_itself_is_not_kept() -> None:
    assert kept_s("refused") == kept_s("too_large") == kept_s("overloaded") == kept_s("timeout") == 0
    assert kept_s("cap") == 0  # the ledger knows when the day ends


def test_an_unknown_model_says_nothing_about_the_other() -> None:
    clock = Clock()
    memory: TroubleMemory[VisionError] = TroubleMemory("provider", clock)
    memory.remember("accurate", VisionError("model", "unknown"))
    assert memory.of_model("accurate") is not None
    assert memory.of_model("fast") is None
    assert memory.of_provider() is None
    clock.now_s += KEPT_S
    assert memory.of_model("accurate") is None
