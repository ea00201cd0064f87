"""The result of inspect_video: what agents are told of a video. Models only; what is in them is video_delivery.py's."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from sam2_mcp_worker.checks.exposure import Verdict
from sam2_mcp_worker.pipelines.video_coverage import VideoCoverage
from sam2_mcp_worker.pipelines.video_delivery import told_spans
from sam2_mcp_worker.tools.inspect_image import NotAvailableModel

Model = TypeVar("Model", bound=BaseModel)


def models_of(kind: type[Model], facts: list[dict[str, Any]] | None) -> list[Model] | None:
    """Each of these facts as a model; None for none."""
    return [kind(**fields) for fields in facts] if facts else None


class Facts(BaseModel):
    """Facts of video_delivery.py: one that stands in no model would be lost without a word."""

    model_config = ConfigDict(extra="forbid")


class CheckModel(Facts):
    """A measured value beside the minimum of a rule."""

    rule: Literal["min_exposure_s", "min_text_height_px", "min_text_height_share"]
    minimum: float
    measured: Annotated[float | None, Field(description="Of a time: what is sure")] = None
    possible: Annotated[float | None, Field(description="Of a time: what it may be at most")] = None
    verdict: Verdict
    reason: str | None = None


class PlaceModel(Facts):
    """Where something stands in one frame."""

    time_s: float
    box_xyxy_px: list[int]
    height_px: Annotated[float, Field(description="Font size of a text; of a label the height of its box")]
    share: Annotated[float | None, Field(description="Of the frame's height")] = None


class Words(Facts):
    """What was read; stands before everything else."""

    text: str


class SmallestText(PlaceModel, Words):
    """The smallest text that was read surely."""


Rows = Annotated[
    list[list[float]] | None,
    Field(description="[earliest, first, last, latest] of each showing: seen at first and at last, possible around"),
]
Seconds = Annotated[float | None, Field(description="All showings together")]
SureSeconds = Annotated[
    float | None, Field(description="All showings together, between samples that show it and lie at most 1 s apart")
]
Verdicts = Annotated[dict[str, Verdict] | None, Field(description="By rule, where there is no room for checks")]


class Showings(Facts):
    """When something was on screen, as far as samples tell."""

    exposures_s: Rows = None
    more_exposures: Annotated[int | None, Field(description="Showings not listed")] = None
    surely_s: SureSeconds = None
    at_most_s: Seconds = None


class Finding(Showings):
    """What is known of a label or phrase over the whole range by now."""

    reason: Annotated[str | None, Field(description="Why it cannot be told, or what is to be known of it")] = None
    frames: Annotated[int | None, Field(description="Samples that show it, if any")] = None
    first_s: float | None = None
    last_s: float | None = None
    smallest_text: PlaceModel | None = None
    checks: list[CheckModel] | None = None
    verdicts: Verdicts = None


Number = Annotated[int, Field(description="Its number in pictures and report")]


class LabelState(Facts):
    """What is said of a label, before what it rests on."""

    number: Number
    label: str
    state: Annotated[
        Literal["shown", "not_shown", "cannot_tell"],
        Field(description="not_shown: every frame of the whole range was looked at for it"),
    ]


class LabelModel(Finding, LabelState):
    """One label."""

    most_at_once: int | None = None
    greatest: PlaceModel | None = None


class PhraseState(Facts):
    """What is said of a phrase, before what it rests on."""

    number: Number
    phrase: str
    state: Annotated[
        Literal["shown", "altered", "review", "not_shown", "cannot_tell"],
        Field(description="altered: numbers, dates or negations differ; review: a person has to look"),
    ]


class PhraseModel(Finding, PhraseState):
    """One phrase."""

    score: Annotated[float | None, Field(description="0-1, how alike what was read is")] = None
    read_as: Annotated[str | None, Field(description="What was read, where it differs")] = None
    differences: list[str] | None = None
    place: Annotated[PlaceModel | None, Field(description="Where it is most alike")] = None


class NumberedWords(Words):
    """A text with its number."""

    number: Number


class TextModel(Showings, NumberedWords):
    """One line of text over time: the same line with its slips of reading is one item."""

    box_xyxy_px: Annotated[list[int], Field(description="Where it was first; origin top left of the upright frame")]
    end_box_xyxy_px: Annotated[list[int] | None, Field(description="Where it was last, if it moved")] = None
    height_px: Annotated[float, Field(description="Font size (em), median of its frames; 0 where it cannot be told")]
    confidence: Annotated[float, Field(description="0-1, of its surest reading")]
    frames: Annotated[int, Field(description="Samples that show it")]
    verdicts: Verdicts = None


class FrameCounts(BaseModel):
    """Frames by what became of them: `same` share the reading of an earlier one that looks the same."""

    sampled: int
    read: int
    same: int
    failed: int


class SpanModel(Facts):
    """A stretch of the video."""

    start_s: float
    end_s: float
    reason: str | None = None


class TimeCoverage(BaseModel):
    """Seconds of the asked range; read, failed and unreached add up to all of it."""

    asked_s: float
    read_s: float
    failed_s: float
    unreached_s: float
    failed: Annotated[list[SpanModel] | None, Field(description="The first 20")] = None
    unreached: list[SpanModel] | None = None
    frames: FrameCounts

    @classmethod
    def of(cls, coverage: VideoCoverage) -> TimeCoverage:
        """The model of a pipeline's account."""
        read, same, failed = coverage.frames_read, coverage.frames_same, coverage.frames_failed
        return cls(
            asked_s=round(coverage.asked_s, 3),
            read_s=round(coverage.read_s, 3),
            failed_s=round(coverage.failed_s, 3),
            unreached_s=round(coverage.unreached_s, 3),
            failed=models_of(SpanModel, told_spans(coverage.failed)),
            unreached=models_of(SpanModel, told_spans(coverage.unreached)),
            frames=FrameCounts(sampled=read + same + failed, read=read, same=same, failed=failed),
        )


class InspectedVideo(BaseModel):
    """Result of inspect_video. Times are seconds since the first frame of the video."""

    file: str
    width_px: int
    height_px: int
    duration_s: float
    audio: Annotated[str | None, Field(description="Codec of the sound, for transcribe_audio")] = None
    engine: str
    notes: list[str] | None = None
    start_s: float
    end_s: float
    interval_s: float
    scene_changes: bool
    coverage: TimeCoverage
    regions_not_available: NotAvailableModel | None = None
    labels: list[LabelModel] | None = None
    phrases: list[PhraseModel] | None = None
    smallest_text: SmallestText | None = None
    checks: Annotated[list[CheckModel] | None, Field(description="The smallest text against the rule pack")] = None
    rule_note: Annotated[str | None, Field(description="Whose minimums these are")] = None
    cuts: Annotated[int | None, Field(description="How many scene changes were seen")] = None
    cuts_s: Annotated[list[float] | None, Field(description="Times of the first frames behind cuts")] = None
    texts: list[TextModel]
    texts_waiting: Annotated[int | None, Field(description="Texts without room here: use the cursor")] = None
    time_line: Annotated[str | None, Field(description="artifact:// address of a picture: when each was shown")] = None
    contact_sheet: Annotated[str | None, Field(description="artifact:// address of a picture: numbered boxes")] = None
    report: Annotated[str | None, Field(description="artifact:// address of the HTML report")] = None
    cursor: Annotated[str | None, Field(description="Call again with it; absent when everything was told")] = None
    next_step: str | None = None
