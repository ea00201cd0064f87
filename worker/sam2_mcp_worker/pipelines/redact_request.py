"""What a redaction is asked for, and whether it can be had for this kind of file. Pure: no files, no server.

Everything that is wrong with a region or a phrase is found here, before any work: a region that was silently left out
would be a leak.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.redact_phrases import normalised

Kind = Literal["image", "pdf", "video"]
Method = Literal["fill", "pixelate", "blur"]
Audio = Literal["keep", "mute"]
Shape = Literal["box", "mask"]

# One region more is a box more in the result; a page of 200 names is redacted by phrases or in two calls.
MAX_REGIONS = 200
MAX_PHRASES = 50
MAX_PHRASE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Region:
    """One region as it was given; `number` counts from 1. Exactly one of the boxes and the handle is set."""

    number: int
    box_xyxy_px: tuple[int, int, int, int] | None = None
    box_xyxy_pt: tuple[float, float, float, float] | None = None
    page_number: int | None = None
    start_s: float | None = None
    end_s: float | None = None
    shape: Shape = "box"
    handle: str = ""


@dataclass(frozen=True, slots=True)
class RedactRequest:
    """The arguments of one call."""

    source: str
    regions: tuple[Region, ...] = ()
    phrases: tuple[str, ...] = ()
    method: Method = "fill"
    audio: Audio = "keep"
    password: str = ""
    cursor: str = ""

    def key_parts(self) -> list[Any]:
        """What of the arguments decides the result, besides the file."""
        password = hashlib.sha256(self.password.encode("utf-8", "replace")).hexdigest()
        return [[asdict(region) for region in self.regions], self.phrases, self.method, self.audio, password]


def check_request(request: RedactRequest, kind: Kind) -> None:
    """Refuse what cannot be done as asked.

    Raises:
        WorkerError: nothing_asked, too_many_regions, phrase_invalid, region_invalid, not_for_this_kind.
    """
    _check_amounts(request)
    _check_phrases(request.phrases)
    if kind == "pdf" and request.method != "fill":
        raise _not_for(kind, f"method {request.method!r}", "content of a PDF is removed and filled, never blurred")
    if kind != "video" and request.audio != "keep":
        raise _not_for(kind, "audio 'mute'", "only a video has sound")
    for region in request.regions:
        _check_region(region, kind)


def _check_amounts(request: RedactRequest) -> None:
    if not request.regions and not request.phrases:
        raise WorkerError(
            "nothing_asked",
            "neither regions nor phrases were given",
            rule="something to redact must be named",
            next_step="give regions [{box_xyxy_px}], [{page_number, box_xyxy_pt}] or [{handle}], or phrases ['...']",
        )
    if len(request.regions) > MAX_REGIONS or len(request.phrases) > MAX_PHRASES:
        raise WorkerError(
            "too_many_regions",
            f"{len(request.regions)} regions and {len(request.phrases)} phrases were given",
            rule=f"at most {MAX_REGIONS} regions and {MAX_PHRASES} phrases in one call",
            next_step="redact the result of this call once more for the rest: upload it and use its handle",
        )


def _check_phrases(phrases: Sequence[str]) -> None:
    for number, phrase in enumerate(phrases, 1):
        if not normalised(phrase) or len(phrase) > MAX_PHRASE_CHARS:
            raise WorkerError(
                "phrase_invalid",
                f"phrase {number} has {len(phrase)} characters, {len(normalised(phrase))} of them printed",
                rule=f"a phrase has 1 to {MAX_PHRASE_CHARS} characters that are printed",
                next_step="correct it and call again",
            )


def _check_region(region: Region, kind: Kind) -> None:
    given = [name for name in ("box_xyxy_px", "box_xyxy_pt", "handle") if getattr(region, name)]
    if len(given) != 1:
        raise _invalid(region, f"names {' and '.join(given) or 'no place'}", "one of box_xyxy_px, box_xyxy_pt, handle")
    box = region.box_xyxy_px or region.box_xyxy_pt
    if box and not (box[0] < box[2] and box[1] < box[3]):
        raise _invalid(region, f"has the box {list(box)}", "a box is [x0, y0, x1, y1] with x0 < x1 and y0 < y1")
    if kind == "pdf":
        _check_pdf_region(region)
    elif region.box_xyxy_pt or region.page_number is not None:
        raise _invalid(region, "is given in pages or points", f"regions of a {kind} are given as box_xyxy_px")
    if kind == "video":
        _check_times(region)
    elif region.start_s is not None or region.end_s is not None:
        raise _invalid(region, "has times", f"start_s and end_s are for videos, this is {_a(kind)}")


def _check_pdf_region(region: Region) -> None:
    if region.page_number is None or not region.box_xyxy_pt:
        raise _invalid(
            region,
            "is no place in a PDF",
            "regions of a PDF are page_number and box_xyxy_pt, as inspect_pdf gives them",
        )
    if region.shape == "mask":
        raise _invalid(region, "asks for shape 'mask'", "regions of a PDF are boxes")


def _check_times(region: Region) -> None:
    if region.shape == "mask":
        raise _invalid(
            region, "asks for shape 'mask'", "masks in videos come from track_video: give the handle of its tracks"
        )
    start, end = region.start_s or 0.0, region.end_s
    if start < 0 or (end is not None and end <= start):
        raise _invalid(region, f"lasts from {start:g} to {end} s", "0 <= start_s < end_s")


def _a(kind: Kind) -> str:
    return f"an {kind}" if kind == "image" else f"a {kind}"


def _invalid(region: Region, what: str, rule: str) -> WorkerError:
    return WorkerError(
        "region_invalid", f"region {region.number} {what}", rule=rule, next_step="correct it and call again"
    )


def _not_for(kind: Kind, what: str, rule: str) -> WorkerError:
    return WorkerError(
        "not_for_this_kind",
        f"{what} was given and the file is {_a(kind)}",
        rule=rule,
        next_step="call again without it",
    )
