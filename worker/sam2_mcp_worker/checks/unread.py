"""Why it cannot be said of a document that something is nowhere in it, as a sentence. Pure."""

from __future__ import annotations

from sam2_mcp_worker.checks.phrase_absence import illegible_pages
from sam2_mcp_worker.checks.reading import Reading

# More pages than a sentence names one by one.
MAX_NAMED = 8


def unread_reason(reading: Reading) -> str:
    """What was not read of it; "" for a whole and legible reading with text in it."""
    undone = [page.number for page in reading.pages if page.status != "done"]
    if undone:
        return f"page {_named(undone)} was not read"
    partly = [page.number for page in reading.pages if page.unread]
    if partly:
        return f"parts of page {_named(partly)} could not be read"
    illegible = illegible_pages(reading)
    if illegible:
        return f"page {_named(illegible)} was read too badly"
    return "" if any(line.text.strip() for _, line in reading.lines()) else "nothing was read"


def _named(numbers: list[int]) -> str:
    more = f" and {len(numbers) - MAX_NAMED} more" if len(numbers) > MAX_NAMED else ""
    return ", ".join(map(str, numbers[:MAX_NAMED])) + more
