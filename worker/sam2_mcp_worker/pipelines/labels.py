"""The labels argument of inspect_image and inspect_pdf as what is asked of a vision provider."""

from __future__ import annotations

from collections.abc import Sequence

from sam2_mcp_worker.checks.labels import Label, checked_labels
from sam2_mcp_worker.engines.ports import Wanted
from sam2_mcp_worker.services import Services


def wanted_labels(services: Services, names: Sequence[str]) -> tuple[Label, ...]:
    """The labels that a call names; the word `default` stands for those of the rule pack in force.

    Raises:
        WorkerError: label_invalid, label_twice, too_many_labels.
    """
    return checked_labels(names, services.rule_pack.labels)


def to_wanted(labels: Sequence[Label], *, text: bool) -> Wanted:
    """The labels with their definitions, for `VisionProvider.look`."""
    names = tuple(label.name for label in labels)
    return Wanted(text=text, labels=names, definitions=tuple(label.definition for label in labels))
