"""Figures that the tests measured, kept as JSON for docs/performance.md; nothing is asserted on them here.

Written to the file that CONTAINER_FIGURES names, or to .cache/container-figures.json.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

DEFAULT_PATH = Path(__file__).parents[2] / ".cache" / "container-figures.json"
MIB = 2**20


class Figures:
    """By group and name; written anew after each addition, so that a run that fails leaves what it had."""

    def __init__(self) -> None:
        self.path = Path(os.environ.get("CONTAINER_FIGURES") or DEFAULT_PATH)
        self._groups: dict[str, dict[str, Any]] = {}

    def add(self, group: str, **figures: Any) -> None:
        self._groups.setdefault(group, {}).update(figures)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self._groups, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def mib(size_bytes: float) -> float:
    return round(size_bytes / MIB, 1)
