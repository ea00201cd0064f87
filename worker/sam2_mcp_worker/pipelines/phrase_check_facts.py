"""What there is to say of a check beside its rows: counts of findings, and in sentences what was not read. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.cursors import number_ranges
from sam2_mcp_worker.pipelines.gathered import Gathered


def counted(findings: Sequence[Finding]) -> dict[str, dict[str, int]]:
    """Numbers of findings by kind and verdict."""
    numbers = Counter((one.kind, one.verdict) for one in findings)
    found: dict[str, dict[str, int]] = {}
    for (kind, verdict), count in sorted(numbers.items()):
        found.setdefault(kind, {})[verdict] = count
    return found


def unread_sentences(gathered: Gathered) -> tuple[str, ...]:
    """What was not read, by reason, and where."""
    found: dict[str, list[int]] = {}
    sentences: list[str] = []
    for page in gathered.main.reading.pages:
        if page.status != "done":
            found.setdefault(f"{page.status} ({page.reason})", []).append(page.number)
        elif page.unread and gathered.main.reading.kind == "pdf":
            found.setdefault("there is print that nobody could read", []).append(page.number)
    for reason, numbers in found.items():
        sentences.append(f"page{'s' if len(numbers) > 1 else ''} {number_ranges(numbers)}: {reason}")
    for reading in gathered.readings if gathered.main.reading.kind != "pdf" else ():
        reasons = Counter(one.reason for page in reading.pages for one in page.unread)
        sentences += [f"{reason} ({count} places)" if count > 1 else reason for reason, count in reasons.items()]
    if gathered.sound_trouble:
        sentences.append(f"the sound of the video: {gathered.sound_trouble}")
    return tuple(sentences)
