"""Sections of a rule pack that hold minimums for what is measured: text, contrast, files, speech, videos.

Owns their fields and whose values they are. Refuses to know how anything is measured. A field that is left out sets no
minimum; a section that is left out sets none at all.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sam2_mcp_worker.checks.findings import Basis

MAX_NOTE_CHARS = 300
# "제22조제4항제1호다목" has 12; several articles in a row stay below this.
MAX_ARTICLE_CHARS = 80

# The largest page of a PDF has 14,400 pt (5.08 m) unless it says otherwise.
SideMm = Annotated[float, Field(gt=0, le=10_000)]
ShortText = Annotated[str, Field(min_length=1, max_length=60)]


class Strict(BaseModel):
    """Part of a pack: unknown keys and values of another type are mistakes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Sourced(Strict):
    """Something with a source. `law` is the id of an entry of [[laws]], `article` the place in it.

    `note` is a sentence that goes along with every finding: what was not verified, or who set a house value.
    """

    basis: Basis
    law: str = Field(default="", max_length=40)
    article: str = Field(default="", max_length=MAX_ARTICLE_CHARS)
    note: str = Field(default="", max_length=MAX_NOTE_CHARS)

    @model_validator(mode="after")
    def _has_its_source(self) -> Sourced:
        if self.basis == "law" and not (self.law and self.article):
            raise ValueError("a rule of basis law names its `law` and its `article`")
        if self.basis != "law" and (self.law or self.article):
            raise ValueError(f"a rule of basis {self.basis} has no law and no article: name the source in `note`")
        if self.basis != "law" and not self.note:
            raise ValueError(f"a rule of basis {self.basis} says in `note` whose it is")
        return self


class TextRules(Sourced):
    """Minimum heights of text: `min_height_pt` where the physical size is known, `min_height_px` elsewhere.

    `min_share_of_largest` is of the largest text of the document, 0-1. Heights that OCR measured nearer to a minimum
    than `near_border_px` are for a person. `applies_to`: the lines of mandatory phrases that were found, or all text.
    """

    min_height_pt: float | None = Field(default=None, gt=0, le=200)
    min_height_px: float | None = Field(default=None, gt=0, le=1000)
    min_share_of_largest: float | None = Field(default=None, gt=0, le=1)
    near_border_px: float = Field(default=3.0, ge=0, le=20)
    applies_to: Literal["phrases", "all"] = "phrases"


class ContrastRules(Sourced):
    """Minimum contrast ratios (1-21, as in WCAG 2.2, 1.4.3): of text, and of text of `large_from_pt` and more."""

    min_ratio: float | None = Field(default=None, ge=1, le=21)
    min_ratio_large: float | None = Field(default=None, ge=1, le=21)
    large_from_pt: float = Field(default=18.0, gt=0, le=200)
    applies_to: Literal["phrases", "all"] = "phrases"


class FileRules(Sourced):
    """What a file must be like, seen without reading it. Left out, a field asks for nothing.

    Page sizes are (width, height) in mm, either way up. `min_bleed_mm` is asked around the trim where artwork reaches
    it. `colour_spaces` are those allowed. `min_image_dpi` is of pictures as they are placed on a page. `attachments`
    are names of files that must be inside; lines that begin with one of `checklist_words` are the document's own list.
    """

    page_sizes_mm: Annotated[
        tuple[Annotated[tuple[SideMm, SideMm], Field(strict=False)], ...], Field(strict=False, max_length=40)
    ] = ()
    page_size_tolerance_mm: float = Field(default=2.0, ge=0, le=50)
    colour_spaces: Annotated[
        tuple[Literal["cmyk", "rgb", "gray", "lab", "spot"], ...], Field(strict=False, max_length=5)
    ] = ()
    min_bleed_mm: float | None = Field(default=None, gt=0, le=50)
    min_image_dpi: float | None = Field(default=None, gt=0, le=2400)
    fonts_embedded: bool = False
    empty_pages_allowed: bool = True
    cut_off_allowed: bool = True
    attachments: Annotated[tuple[ShortText, ...], Field(strict=False, max_length=20)] = ()
    checklist_words: Annotated[tuple[ShortText, ...], Field(strict=False, max_length=20)] = ()


class SpeechRules(Sourced):
    """How a mandatory notice is spoken beside the rest of the speech: at most so much faster and quieter.

    `min_share` is of the time of all speech, 0-1. `while_shown`: what is spoken stands on the screen meanwhile.
    """

    max_rate_ratio: float | None = Field(default=None, gt=0, le=10)
    max_quieter_db: float | None = Field(default=None, ge=0, le=60)
    min_share: float | None = Field(default=None, gt=0, le=1)
    while_shown: bool = False


class VideoRules(Sourced):
    """Minimums for what videos show; None where there is none.

    `basis` says whose values they are: `house` is the operator's own, which `note` says in a sentence that goes along
    with every verdict. A height in pixels is of the upright frame, a share of the frame's height.
    """

    min_text_height_px: float | None = Field(default=None, gt=0, le=1000)
    min_text_height_share: float | None = Field(default=None, gt=0, lt=1)
    min_exposure_s: float | None = Field(default=None, gt=0, le=3600)
    basis: Literal["house"]
    note: str = Field(min_length=1, max_length=MAX_NOTE_CHARS)
