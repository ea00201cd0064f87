"""What was read of a document, as the judges need it: lines with their places, and what was not read.

Owns the shape that texts, pictures, PDFs and sound have in common. Refuses to know who read and how. A judge may call
something absent only over pages that are `done` and have nothing `unread`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Source = Literal["text_layer", "ocr", "speech", "text"]
"""Where a line comes from; `text` was given as such by the caller or stands in a text file."""

Kind = Literal["text", "image", "pdf", "sound", "video"]
"""Of a video the one page holds the different lines of text over time, with first and last times seen."""

Unit = Literal["pt", "px", "s", "line"]
Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class ReadLine:
    """A line of text, or a sentence that was heard.

    `box_xyxy` and `height` (of its letters, measured or as set) are in the unit of the reading, origin top left. Of a
    line in several sizes `height` is the smallest one, `usual_height` that of most of its letters.
    `confidence` 0-1 is that of OCR. `start_s` and `end_s` are times of sound, or of what a video shows.
    """

    text: str
    source: Source
    box_xyxy: Box | None = None
    height: float | None = None
    confidence: float | None = None
    start_s: float | None = None
    end_s: float | None = None
    usual_height: float | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of a page that looks like text, or a stretch of sound that may hold speech, and that nobody could read.

    Its extent is `box_xyxy` in a page or picture, `start_s` to `end_s` in sound and video; with none of them it may lie
    anywhere.
    """

    reason: str
    box_xyxy: Box | None = None
    start_s: float | None = None
    end_s: float | None = None


@dataclass(frozen=True, slots=True)
class ReadPage:
    """One page (a picture, a text, a sound or a video is one page). Lines are in reading order.

    `size` is width and height in the unit of the reading. `reason` says why a page failed or was not reached.
    """

    number: int
    status: Literal["done", "failed", "unreached"]
    lines: tuple[ReadLine, ...] = ()
    unread: tuple[Unread, ...] = ()
    size: tuple[float, float] | None = None
    reason: str = ""

    @property
    def whole(self) -> bool:
        """Whether everything on it was read, so that what is not among the lines is not there."""
        return self.status == "done" and not self.unread


@dataclass(frozen=True, slots=True)
class Reading:
    """All pages that were asked for, in order, also those that could not be read."""

    kind: Kind
    unit: Unit
    pages: tuple[ReadPage, ...]

    @property
    def whole(self) -> bool:
        """Whether there is something, and all of it was read."""
        return bool(self.pages) and all(page.whole for page in self.pages)

    def lines(self) -> Iterator[tuple[ReadPage, ReadLine]]:
        """Every line with its page."""
        for page in self.pages:
            for line in page.lines:
                yield page, line
