"""Whether print can still be read after it was pixelated or blurred. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sam2_mcp_worker.engines.ports import TextLine
from sam2_mcp_worker.media.bit_search import approximate
from sam2_mcp_worker.pipelines.redact_phrases import letters

# Readings of smeared print share up to half of their letters with anything; two thirds mean that it was read.
LEGIBLE_ERRORS = 0.33
# Shorter readings agree by chance.
MIN_LETTERS = 3


def still_legible(before: Sequence[TextLine], after: Sequence[TextLine]) -> bool:
    """Whether a line that was read before is (nearly) contained in what is read now."""
    now = "".join(letters(line.text) for line in after)
    for line in before:
        was = letters(line.text)
        if len(was) >= MIN_LETTERS and approximate(was, now, int(len(was) * LEGIBLE_ERRORS)):
            return True
    return False
