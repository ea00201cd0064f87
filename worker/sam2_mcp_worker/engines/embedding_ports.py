"""The port of engines that place texts by their meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError

Vector = tuple[float, ...]
"""A text's place, of length 1: the product of two of them is their likeness, -1 to 1."""


class Embedder(Protocol):
    """Places texts so that those that mean the same lie near one another. Texts leave this machine; each costs."""

    @property
    def identity(self) -> str:
        """Host, model, version: part of every cache key."""
        ...

    @property
    def where(self) -> str:
        """The host that texts are sent to."""
        ...

    @property
    def trouble(self) -> WorkerError | None:
        """Why asking is useless now, None when it is not."""
        ...

    def status(self) -> dict[str, Any]:
        """What get_status tells. Reads no disk, asks nobody."""
        ...

    async def start(self) -> None:
        """Before the first call; does not wait for the network."""
        ...

    async def close(self) -> None:
        """After the last."""
        ...

    async def embed(self, texts: Sequence[str], *, job: str, deadline: Deadline) -> list[Vector]:
        """The places of the texts, in their order, with retries that fit. Costs are told to `spending.spend`.

        Raises:
            WorkerError: refused, overloaded, cap reached, unreachable, no usable answer.
        """
        ...
