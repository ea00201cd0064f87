"""What of a PDF inspection is delivered in which call. Pure: no files, no clock, no server.

Over the calls of one request every page is delivered exactly once, and within a page every item: its lines, then its
regions. A page that does not fit into what is left of a result waits for the next; one that is too long for any result
comes in parts. A page that was delivered as failed and could be read later (after a restart) is delivered once more, as
done.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from sam2_mcp_worker.cursors import decode_cursor, encode_cursor, number_ranges, parse_ranges
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage

# JSON around one page's text: keys, numbers, the overlay's address.
PAGE_OVERHEAD_CHARS = 350
# A page that nobody can read may hold hundreds of areas of ink; their number is always told, their boxes up to this.
MAX_INK_BOXES = 50
INK_BOX_CHARS = 32
Model = Literal["", "fast", "accurate"]
MODELS: dict[str, Model] = {"": "", "fast": "fast", "accurate": "accurate"}


@dataclass(slots=True)
class DeliveredPage:
    """A page, or the part of it that fits: items `[first_item, last_item)` of its result."""

    page_number: int
    result: dict[str, Any] | None
    error: WorkerError | None
    first_item: int = 0
    last_item: int = 0

    @property
    def continues(self) -> bool:
        """Whether the page has items that did not fit."""
        return self.result is not None and self.last_item < len(items_of(self.result))

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of this part."""
        return self.result["lines"][self.first_item : self.last_item] if self.result is not None else []

    @property
    def regions(self) -> list[dict[str, Any]]:
        """The regions of this part."""
        if self.result is None:
            return []
        first = max(self.first_item, len(self.result["lines"]))
        return items_of(self.result)[first : self.last_item]


def items_of(result: dict[str, Any]) -> list[dict[str, Any]]:
    """What of a page is delivered piece by piece: lines, then regions."""
    return [*result["lines"], *(result.get("regions") or ())]


@dataclass(slots=True)
class Delivered:
    """What earlier calls of the request delivered, as the cursor tells it, and with which `model` of a provider."""

    delivered: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    next_item: dict[int, int] = field(default_factory=dict)
    model: Model = ""


def _item_chars(item: dict[str, Any], detailed: bool) -> int:
    whole = detailed or "text" not in item  # regions always come with their boxes
    return len(json.dumps(item if whole else item["text"], ensure_ascii=False))


def _page_chars(result: dict[str, Any] | None, detailed: bool) -> int:
    """What a page takes besides its lines."""
    if result is None:
        return PAGE_OVERHEAD_CHARS
    boxes = min(len(result.get("undetected_ink", ())), MAX_INK_BOXES) if detailed else 0
    notes = json.dumps([*result.get("notes", ()), result.get("regions_reason", "")], ensure_ascii=False)
    return PAGE_OVERHEAD_CHARS + len(notes) + boxes * INK_BOX_CHARS


def budget_for_pages(coverage: Coverage[int, Any], result_max_chars: int) -> int:
    """What is left for pages beside the lists of failed and unreached ones."""
    lists = json.dumps([sorted(coverage.failed), list(coverage.unreached)], separators=(",", ":"))
    return result_max_chars - len(lists)


def _deliverable(coverage: Coverage[int, Any], before: Delivered) -> list[int]:
    """Settled pages that were not delivered, and those delivered as failed that a later try could read."""
    return [
        number
        for number in coverage.items
        if (number in coverage.done and (number not in before.delivered or number in before.failed))
        or (number in coverage.failed and number not in before.delivered)
    ]


def reported(coverage: Coverage[int, Any], before: Delivered) -> Coverage[int, Any]:
    """The coverage with those pages as failed that failed in an earlier call and were not tried again since."""
    failed_before = {
        number: WorkerError("failed_before", "see the earlier result")
        for number in before.failed
        if number in coverage.unreached
    }
    return Coverage(coverage.items, dict(coverage.done), failed_before | coverage.failed)


def fills_a_result(coverage: Coverage[int, Any], before: Delivered, budget: int, detailed: bool) -> bool:
    """Whether what is settled already fills a result, so that waiting longer brings the agent nothing."""
    total = 0
    for number in _deliverable(coverage, before):
        result = coverage.done.get(number)
        rest = items_of(result)[before.next_item.get(number, 0) :] if result is not None else []
        total += _page_chars(result, detailed) + sum(_item_chars(item, detailed) for item in rest)
        if total >= budget:
            return True
    return False


def pack(coverage: Coverage[int, Any], before: Delivered, budget: int, detailed: bool) -> list[DeliveredPage]:
    """The settled pages in order, whole as long as they fit.

    The first page always gives at least one item, so that every call gets on, whatever the budget.
    """
    pages: list[DeliveredPage] = []
    left = budget
    for number in _deliverable(coverage, before):
        left -= _page_chars(coverage.done.get(number), detailed)
        if pages and left <= 0:
            break
        if number in coverage.failed:
            pages.append(DeliveredPage(number, None, coverage.failed[number]))
            continue
        items, first = items_of(coverage.done[number]), before.next_item.get(number, 0)
        last, left = _fit(items, first, left, detailed)
        page = DeliveredPage(number, coverage.done[number], None, first, last)
        if page.continues and pages:
            break  # the head of the next result has more room for it
        pages.append(page)
        if page.continues:
            break
    return pages


def _fit(items: list[dict[str, Any]], first: int, left: int, detailed: bool) -> tuple[int, int]:
    """Index after the last item that fits, and what is left of the budget then."""
    last = first
    while last < len(items) and (last == first or left >= _item_chars(items[last], detailed)):
        left -= _item_chars(items[last], detailed)
        last += 1
    return last, left


def delivered_after(coverage: Coverage[int, Any], before: Delivered, pages: list[DeliveredPage]) -> set[int]:
    """Numbers of the pages that agents have whole once this result is sent."""
    whole = {page.page_number for page in pages if not page.continues}
    # What was delivered as failed and could be read since is still to be delivered, as done.
    readable_now = before.failed & set(coverage.done)
    return ((before.delivered - readable_now) | whole) - set(_open_parts(before, pages))


def _open_parts(before: Delivered, pages: list[DeliveredPage]) -> dict[int, int]:
    """Pages that are delivered in part, with the item where each goes on."""
    parts = before.next_item | {page.page_number: page.last_item for page in pages if page.continues}
    whole = {page.page_number for page in pages if not page.continues}
    return {number: item for number, item in parts.items() if number not in whole}


def next_cursor(
    tool: str, key: str, coverage: Coverage[int, Any], before: Delivered, pages: list[DeliveredPage], *, model: str = ""
) -> str | None:
    """Where the next call goes on, and with which model; None when everything has been delivered."""
    open_parts = _open_parts(before, pages)
    delivered = delivered_after(coverage, before, pages)
    if delivered >= set(coverage.items):
        return None
    state: dict[str, Any] = {"d": number_ranges(sorted(delivered))}
    failed = (before.failed - set(coverage.done)) | (set(coverage.failed) & delivered)
    if failed:
        state["f"] = number_ranges(sorted(failed))
    if open_parts:
        state["n"] = {str(number): item for number, item in open_parts.items()}
    if model:
        state["m"] = model
    return encode_cursor(tool, key, state)


def from_cursor(cursor: str | None, tool: str, key: str, page_count: int) -> Delivered:
    """What the cursor says was delivered; nothing for no cursor.

    Raises:
        WorkerError: `cursor_invalid`.
    """
    if cursor is None or not cursor.strip():
        return Delivered()
    state = decode_cursor(cursor, tool, key)
    try:
        delivered = set(parse_ranges(state["d"], limit=page_count)) if state["d"] else set()
        failed = set(parse_ranges(state["f"], limit=page_count)) if state.get("f") else set()
        next_item = {int(number): max(0, int(item)) for number, item in state.get("n", {}).items()}
        model = MODELS[state.get("m", "")]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WorkerError(
            "cursor_invalid", "the cursor is damaged", next_step="repeat the call without cursor to start again"
        ) from error
    return Delivered(delivered, failed, next_item, model)
