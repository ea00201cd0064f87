"""What OCR found on a page beside its text layer: which lines are new, and which lines of the layer are printed over.

Pure. A layer line may be covered by a picture that says something else; then the print counts, because that is what
people see, and the covered line is no evidence. A line that OCR could not read with confidence contradicts nothing, and
a layer line in a script that the reader does not know cannot be contradicted: both are kept then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sam2_mcp_worker.engines.ports import Box, TextLine
from sam2_mcp_worker.media.boxes import AnyBox, same_line
from sam2_mcp_worker.pipelines.text_layer import CONFIDENT_ABOVE, ReadableScripts, says_the_same

# A badge on a long line does not hide it; print over half of its width does.
HIDING_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class LayerLine:
    """A line of the text layer with its box in pixels of the rendered page."""

    text: str
    box_px: AnyBox


@dataclass(frozen=True, slots=True)
class Comparison:
    """Lines that the layer does not have, ink that neither explains, indices of layer lines that are printed over."""

    new_lines: tuple[TextLine, ...]
    unread_ink: tuple[Box, ...]
    printed_over: frozenset[int]


def compare(
    layer: Sequence[LayerLine], lines: Sequence[TextLine], ink: Sequence[Box], scripts: ReadableScripts
) -> Comparison:
    """Sort what was read in the picture by what the layer says at the same place."""
    new: list[TextLine] = []
    unread = [box for box in ink if not any(same_line(box, known.box_px) for known in layer)]
    printed_over: set[int] = set()
    for line in lines:
        places = [i for i, known in enumerate(layer) if same_line(line.box_xyxy_px, known.box_px)]
        if any(says_the_same(line.text, layer[i].text, scripts) for i in places):
            continue
        if not places or line.confidence >= CONFIDENT_ABOVE:
            new.append(line)
            printed_over.update(
                i for i in places if scripts.covers(layer[i].text) and _hides(line.box_xyxy_px, layer[i].box_px)
            )
        elif any(scripts.covers(layer[i].text) for i in places):
            unread.append(line.box_xyxy_px)
    return Comparison(tuple(new), tuple(unread), frozenset(printed_over))


def _hides(box: AnyBox, known: AnyBox) -> bool:
    return min(box[2], known[2]) - max(box[0], known[0]) >= HIDING_SHARE * (known[2] - known[0])
