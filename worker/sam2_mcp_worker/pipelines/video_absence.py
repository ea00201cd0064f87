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
    failed = [look for look in unsure if look.failed]
    partly = [look for look in unsure if look.partly and not look.failed]
    rest = [look for look in unsure if not look.partly and not look.failed]
    of_all = f"of {len(looks.looks)} frames"
    parts = [
        _spans(looks.unreached, "not reached yet"),
        _spans(looks.failed, "cannot be decoded"),
        f"{len(failed)} {of_all} failed{_times(failed)}" if failed else "",
        f"{len(partly)} {of_all} were read in part{_times(partly)}" if partly else "",
        f"{why} in {len(rest)} {of_all}{_times(rest) if len(rest) < len(looks.looks) else ''}" if rest else "",
        "" if looks.looks or looks.unreached or looks.failed else "no frame was sampled",
    ]
    return "; ".join(part for part in parts if part)


def _times(looks: Sequence[FrameLook]) -> str:
    """Where to look for the first of them."""
    told = ", ".join(f"{look.time_s:.2f}" for look in looks[:_SPANS_TOLD])
    return f" (at {told}{' ...' if len(looks) > _SPANS_TOLD else ''} s)"


def _spans(spans: Sequence[Span], what: str) -> str:
    if not spans:
        return ""
    told = ", ".join(f"{span.start_s:.2f}-{span.end_s:.2f} s" for span in spans[:_SPANS_TOLD])
    more = f" and {len(spans) - _SPANS_TOLD} more" if len(spans) > _SPANS_TOLD else ""
    return f"{told}{more} {what}"
