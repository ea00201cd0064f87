"""Why asking a provider is useless just now: remembered for a while, so that not every request finds it out."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from sam2_mcp_worker.engines.provider_errors import WHOLE_PROVIDER, ProviderError

# A wrong key stays wrong for longer than a network is down; both are tried again by themselves.
KEPT_S = 60.0
UNREACHABLE_KEPT_S = 15.0

logger = logging.getLogger(__name__)

Error = TypeVar("Error", bound=ProviderError)


class TroubleMemory(Generic[Error]):
    """What concerns the whole provider, and what concerns one of its models."""

    def __init__(self, provider: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = provider
        self._clock = clock
        self._provider: tuple[Error, float] | None = None
        self._models: dict[str, tuple[Error, float]] = {}

    def of_provider(self) -> Error | None:
        """What is wrong with all of it."""
        return self._current(self._provider)

    def of_model(self, model: str) -> Error | None:
        """What is wrong with one model."""
        return self._current(self._models.get(model))

    def _current(self, kept: tuple[Error, float] | None) -> Error | None:
        return kept[0] if kept is not None and self._clock() < kept[1] else None

    def remember(self, model: str, error: Error) -> None:
        """Keep what another request would meet too; the day's cap is known to the ledger."""
        if error.kind not in WHOLE_PROVIDER or error.kind == "cap":
            return
        if error.kind == "model":
            self._models[model] = (error, self._clock() + KEPT_S)
            logger.warning("%s: %s; %s", self._name, error.public_text, error.private)
        else:
            self.remember_provider(error, UNREACHABLE_KEPT_S if error.kind == "unreachable" else KEPT_S)

    def remember_provider(self, error: Error, kept_s: float) -> None:
        """Keep what is wrong with all of it for so long."""
        self._provider = (error, self._clock() + kept_s)
        logger.warning("%s: %s; %s", self._name, error.public_text, error.private)
