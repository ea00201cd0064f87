"""Who reads the pages of one call of inspect_pdf: the provider's model that its pages ask for, or the local engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sam2_mcp_worker.checks.labels import Label
from sam2_mcp_worker.engines.ports import VisionModel
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.claude_reader import ClaudeReader
from sam2_mcp_worker.pipelines.labels import to_wanted
from sam2_mcp_worker.pipelines.page_reading import PageReaders, joint_identity
from sam2_mcp_worker.pipelines.reading_choice import Mode, choose_model, choose_reading
from sam2_mcp_worker.services import Services


@dataclass(frozen=True, slots=True)
class PageChoice:
    """The readers, their engine's name for people, why no regions are looked for (or None), and notes for the result.

    `model` is what the call is after, also while the provider is in trouble; empty without a provider.
    """

    readers: PageReaders
    engine: str
    model: VisionModel | Literal[""]
    regions_missing: WorkerError | None
    notes: tuple[str, ...]


def choose_page_readers(services: Services, mode: Mode, tile_count: int, labels: Sequence[Label]) -> PageChoice:
    """The readers for a call whose pages have `tile_count` tiles together."""
    choice = choose_reading(services, mode, tile_count, to_wanted(labels, text=True))
    if services.vision is None:
        return PageChoice(local_readers(services), choice.engine, "", choice.regions_missing, choice.notes)
    model = choose_model(services.settings, mode, tile_count)
    readers = provider_readers(services, model, labels)
    if not choice.reader.costs_money:
        readers = PageReaders(choice.reader, wanted=readers.identity)
    return PageChoice(readers, choice.engine, model, choice.regions_missing, choice.notes)


def provider_readers(services: Services, model: VisionModel, labels: Sequence[Label]) -> PageReaders:
    """The provider's, whether it can be used right now or not."""
    text = ClaudeReader(services, model, to_wanted(labels, text=True))
    regions = ClaudeReader(services, model, to_wanted(labels, text=False)) if labels else None
    names = tuple(label.name for label in labels)
    return PageReaders(text, regions, names, wanted=joint_identity(text, regions))


def provider_identity(services: Services) -> list[str]:
    """What decides the readings of any mode; a cursor is of no use after it changed."""
    models: tuple[VisionModel, ...] = ("fast", "accurate")
    return [services.vision.identity(model) for model in models] if services.vision is not None else []


def local_readers(services: Services) -> PageReaders:
    """The local engine, which costs nothing and looks for no regions."""
    return PageReaders(services.reader, wanted=services.reader.identity)
