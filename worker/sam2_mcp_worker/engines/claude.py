"""Claude behind the vision port (being built)."""

from __future__ import annotations

from sam2_mcp_worker.engines.ports import VisionProvider
from sam2_mcp_worker.settings import Settings


def build_claude(settings: Settings) -> VisionProvider:
    """The provider for these settings."""
    raise NotImplementedError
