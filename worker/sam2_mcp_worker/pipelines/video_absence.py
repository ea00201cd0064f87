"""Why it cannot be told that something was not shown in a video. Absence is only claimed over what was really read."""

from __future__ import annotations

from collections.abc import Sequence

from sam2_mcp_worker.pipelines.frame_looks import FrameLook, Span, VideoLooks

# The first spans say enough; all of them are in the coverage.
_SPANS_TOLD = 3


def why_unsure(looks: VideoLooks, unsure: Sequence[FrameLook], why: str) -> str:
    """Empty when every frame and every moment of the range was read; else what was not.

    Args:
        unsure: looks that say nothing about the thing asked for.
        why: what is the matter with those of them that neither failed nor were read in part.
    """
    failed = sum(bool(look.failed) for look in unsure)
    partly = sum(bool(look.partly) and not look.failed for look in unsure)
    rest = len(unsure) - failed - partly
    parts = [
        _spans(looks.unreached, "not reached yet"),
        _spans(looks.failed, "cannot be decoded"),
        f"{failed} of {len(looks.looks)} frames failed" if failed else "",
        f"{partly} of {len(looks.looks)} frames were read in part" if partly else "",
        f"{why} in {rest} of {len(looks.looks)} frames" if rest else "",
        "" if looks.looks or looks.unreached or looks.failed else "no frame was sampled",
    ]
    return "; ".join(part for part in parts if part)


def _spans(spans: Sequence[Span], what: str) -> str:
    if not spans:
        return ""
    told = ", ".join(f"{span.start_s:.2f}-{span.end_s:.2f} s" for span in spans[:_SPANS_TOLD])
    more = f" and {len(spans) - _SPANS_TOLD} more" if len(spans) > _SPANS_TOLD else ""
    return f"{told}{more} {what}"
