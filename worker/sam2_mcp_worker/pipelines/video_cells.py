"""Which frames of an inspected video the contact sheet shows, and what is boxed in each.

Pure. One frame for each finding where it is seen best, then one for each scene, then lines of text; frames that look
the same count as one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sam2_mcp_worker.media.exposure_sheets import MAX_CELLS, CellBox
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, VideoLooks
from sam2_mcp_worker.pipelines.frame_plan import choose_even
from sam2_mcp_worker.pipelines.text_tracks import TextTrack
from sam2_mcp_worker.pipelines.video_finding_types import Place, VideoFindings
from sam2_mcp_worker.pipelines.video_rows import Numbered, notable, numbered

# More frames in one cell hide its picture; the report and the result have all of them.
MAX_BOXES = 24


@dataclass(frozen=True, slots=True)
class Cell:
    """A frame by its own time, and its numbered boxes in pixels of the whole frame."""

    time_s: float
    boxes: tuple[CellBox, ...]


def choose_cells(looks: VideoLooks, findings: VideoFindings, most: int = MAX_CELLS) -> list[Cell]:
    """The frames of the contact sheet by time, at most so many; none where no frame was read."""
    seen = {look.time_s: look for look in looks.looks if not look.failed}
    named = numbered(findings)
    chosen: dict[float, FrameLook] = {}
    for time_s in _wanted(looks, findings, named):
        look = seen.get(time_s)
        if look is not None and len(chosen) < most:
            shown = _representative(look, seen)
            chosen[shown.time_s] = shown
    phrases = _phrase_boxes(chosen, seen, named)
    return [Cell(look.time_s, tuple(_boxes(look, phrases, named))[:MAX_BOXES]) for _, look in sorted(chosen.items())]


def _representative(look: FrameLook, seen: Mapping[float, FrameLook]) -> FrameLook:
    """The frame that stands for all that look like it."""
    return seen.get(look.same_as_s, look) if look.same_as_s is not None else look


def _wanted(looks: VideoLooks, findings: VideoFindings, named: Numbered) -> Iterator[float]:
    """Times of looks, the most telling first."""
    places: list[Place | None] = [one.place for one in findings.phrases]
    places += [one.greatest for one in findings.labels]
    places += [one.smallest for one in findings.phrases]
    places += [findings.smallest_text.place] if findings.smallest_text else []
    yield from (place.time_s for place in places if place is not None)
    read = [look for look in looks.looks if not look.failed]
    scenes = [look.time_s for number, look in enumerate(read) if number == 0 or look.kind == "after_cut"]
    yield from _spread(scenes, MAX_CELLS // 2)
    yield from (one.first_s for _, one in notable(named.texts, MAX_CELLS))
    yield from scenes
    yield from _spread([look.time_s for look in read if look.same_as_s is None], MAX_CELLS // 4)


def _spread(times_s: list[float], most: int) -> list[float]:
    return [times_s[index] for index in choose_even(times_s, range(len(times_s)), most)]


def _phrase_boxes(
    chosen: Mapping[float, FrameLook], seen: Mapping[float, FrameLook], named: Numbered
) -> dict[float, dict[CellBox, None]]:
    """The places of all phrases in the chosen frames, those included that look the same; each box once."""
    boxes: dict[float, dict[CellBox, None]] = {time_s: {} for time_s in chosen}
    for number, phrase in named.phrases:
        for place in phrase.places:
            look = seen.get(place.time_s)
            shown = _representative(look, seen) if look is not None else None
            here = boxes.get(shown.time_s) if shown is not None else None
            if here is not None:
                here[CellBox("phrase", number, place.box_xyxy_px)] = None
    return boxes


def _boxes(look: FrameLook, phrases: Mapping[float, Mapping[CellBox, None]], named: Numbered) -> Iterator[CellBox]:
    """What is known to stand in this frame: regions, phrases, lines of text."""
    numbers = {one.label: number for number, one in named.labels}
    for region in look.regions or ():
        if region.label in numbers:
            yield CellBox("label", numbers[region.label], region.box_xyxy_px)
    yield from phrases[look.time_s]
    for number, text in named.texts:
        yield from (CellBox("text", number, line) for line in _lines_of(text, look))


def _lines_of(text: TextTrack, look: FrameLook) -> Iterator[tuple[int, int, int, int]]:
    """The line of the track in this frame; of several with its words, the one nearest to where it was first seen."""
    if not text.first_s <= look.time_s <= text.last_s:
        return
    words = {text.text, *text.variants}
    boxes = [line.box_xyxy_px for line in look.lines if line.text in words]
    if boxes:
        x, y = text.box_xyxy_px[:2]
        yield min(boxes, key=lambda box: abs(box[0] - x) + abs(box[1] - y))
