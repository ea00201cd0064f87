"""The task module of the redact children: they cover pixels and clean PDFs, in one pool."""

from __future__ import annotations

from typing import Any

from sam2_mcp_worker.media import image_child, redact_image


def setup(config: dict[str, Any]) -> None:
    """Load what is slow to load. There is nothing to configure."""
    image_child.prepare()


TASKS = {**redact_image.TASKS}
