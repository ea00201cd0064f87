"""The task module of the redact children: they cover pixels and clean PDFs, and look into PDFs, in one pool."""

from __future__ import annotations

from typing import Any

from sam2_mcp_worker.media import (
    image_child,
    pdf_child,
    pdf_facts,
    pdf_tables,
    redact_image,
    redact_pdf,
    redact_pdf_find,
    redact_verify_file,
    redact_verify_pdf,
    redact_video,
)


def setup(config: dict[str, Any]) -> None:
    """Load what is slow to load. There is nothing to configure."""
    image_child.prepare()


TASKS = {
    **pdf_facts.TASKS,
    **redact_image.TASKS,
    **redact_pdf.TASKS,
    **redact_pdf_find.TASKS,
    **redact_verify_pdf.TASKS,
    **redact_verify_file.TASKS,
    **redact_video.TASKS,
    **pdf_tables.TASKS,
    "pdf_open": pdf_child.pdf_open,
}
