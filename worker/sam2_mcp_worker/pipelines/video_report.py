"""Turns the inspection of a video into one HTML file for people: what was read, when each thing was shown, how large.

A pure function of its input; the file is set in report_document.py. Nothing is said to be absent but what the findings
say so of, and what was not read stands above everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sam2_mcp_worker.checks.exposure import BRIDGED_S
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, Span, VideoLooks
from sam2_mcp_worker.pipelines.inspected_video import InspectedVideo
from sam2_mcp_worker.pipelines.report_document import (
    JPEG_SIGNATURE,
    document,
    figures_html,
    inlined,
    say,
)
from sam2_mcp_worker.pipelines.report_html import both, text_html
from sam2_mcp_worker.pipelines.video_report_tables import clock, finding_tables, rules_card
from sam2_mcp_worker.pipelines.video_rows import length_s

# A file of which much is damaged has thousands of spans; the result has them all.
MAX_SPANS = 200
ROUNDING_S = 0.0005  # times are told in milliseconds


@dataclass(frozen=True, slots=True)
class ReportPictures:
    """JPEGs to show; None for what there is not."""

    time_line: bytes | None
    contact_sheet: bytes | None


def render_video_report(inspected: InspectedVideo, pictures: ReportPictures, created_at: str) -> str:
    """The whole report.

    Args:
        created_at: ISO 8601.

    Returns:
        HTML that can be encoded as UTF-8 whatever the video held.
    """
    main = [
        _verdict(inspected.looks),
        _figure(pictures.time_line, "Time line", "시간표", "A bar for each time that a finding was shown"),
        rules_card(inspected.rules, inspected.findings),
        finding_tables(inspected.findings, inspected.not_looked),
        _figure(
            pictures.contact_sheet, "Frames", "화면", "Frames of the video with numbered boxes around the findings"
        ),
        _unread(inspected.looks),
        _how_to_read(inspected.looks),
        _notes(inspected.notes),
    ]
    return document(
        name=inspected.stored.name,
        created_at=created_at,
        engine=f"{inspected.engine} · {_facts(inspected)}",
        main="\n".join(part for part in main if part),
        footer="Times are minutes and seconds since the first frame, sizes are pixels of the upright frame.",
    )


def _facts(inspected: InspectedVideo) -> str:
    facts = inspected.facts
    return (
        f"{facts.width_px} × {facts.height_px} px · {clock(facts.duration_s)} · {facts.fps:g} frames/s · {facts.codec}"
    )


def _verdict(looks: VideoLooks) -> str:
    asked_s = looks.asked.end_s - looks.asked.start_s
    failed_s, unreached_s = length_s(looks.failed), length_s(looks.unreached)
    failed = sum(bool(look.failed) for look in looks.looks)
    partly = sum(bool(look.partly) for look in looks.looks)
    whole = not (looks.failed or looks.unreached or failed or partly) and bool(looks.looks)
    css_class = "card verdict" if whole else "card verdict incomplete"
    read = [look for look in looks.looks if not look.failed]
    figures = (
        (f"{asked_s:.2f} s", "asked for", "요청한 시간"),
        (f"{asked_s - failed_s - unreached_s:.2f} s", "read", "읽음"),
        (f"{failed_s:.2f} s", "cannot be decoded", "해독 불가"),
        (f"{unreached_s:.2f} s", "not reached", "읽지 못함"),
        (len(looks.looks), "frames looked at", "확인한 화면"),
        (sum(look.same_as_s is not None for look in read), "of them like an earlier one", "앞 화면과 같음"),
        (failed, "frames failed", "실패한 화면"),
    )
    words = _whole_words(looks) if whole else _incomplete_words(looks, failed, partly)
    return f'<section class="{css_class}" aria-label="Coverage">\n{words}{figures_html(figures)}\n</section>'


def _whole_words(looks: VideoLooks) -> str:
    start, end = clock(looks.asked.start_s), clock(looks.asked.end_s)
    return say(f"Complete: {start} to {end} was read.", f"{start}부터 {end}까지 모두 읽었습니다.")


def _incomplete_words(looks: VideoLooks, failed: int, partly: int) -> str:
    english, korean = [], []
    for spans, en, ko in (
        (looks.unreached, "not reached", "읽지 못함"),
        (looks.failed, "cannot be decoded", "해독 불가"),
    ):
        if spans:
            english.append(f"{en}: {_ranges(spans)}")
            korean.append(f"{ko}: {_ranges(spans)}")
    for count, en, ko in ((failed, "failed", "화면 실패"), (partly, "read in part", "화면 일부만 읽음")):
        if count:
            english.append(f"{count} frame{'s' if count > 1 else ''} {en}")
            korean.append(f"{ko} {count}")
    if not looks.looks:
        english.append("no frame was read")
        korean.append("읽은 화면 없음")
    headline = say(f"Incomplete: {'; '.join(english)}.", f"일부만 읽었습니다({', '.join(korean)}).")
    caution = both(
        "What is not found in this report may be shown in what was not read.",
        "이 보고서에 없는 내용이 읽지 못한 부분에 있을 수 있습니다.",
    )
    return f"{headline}<p>{caution}</p>\n"


def _ranges(spans: Sequence[Span]) -> str:
    """The first few spans, and how many more."""
    few = 6
    told = ", ".join(f"{clock(span.start_s)}–{clock(span.end_s)}" for span in spans[:few])
    return told + (f" +{len(spans) - few}" if len(spans) > few else "")


def _figure(jpeg: bytes | None, english: str, korean: str, alt: str) -> str:
    if jpeg is not None and jpeg.startswith(JPEG_SIGNATURE):
        shown = inlined(jpeg, alt)
    else:
        shown = f'<p class="left-out">{both("There is no such picture.", "그림이 없습니다.")}</p>'
    return f'<section class="card"><h2>{both(english, korean)}</h2>\n<figure class="fit">{shown}</figure></section>'


def _unread(looks: VideoLooks) -> str:
    """Everything that nothing may be concluded about, with its reason."""
    rows = [
        *((span.start_s, span.end_s, "cannot be decoded", "해독 불가", span.reason) for span in looks.failed),
        *((span.start_s, span.end_s, "not reached", "읽지 못함", span.reason) for span in looks.unreached),
        *(row for look in looks.looks for row in _look_troubles(look)),
    ]
    if not rows:
        return ""
    items = "\n".join(
        f"<li>{text_html(_when(start_s, end_s))} {both(en, ko)}{': ' if why else ''}{text_html(why)}</li>"
        for start_s, end_s, en, ko, why in sorted(rows)[:MAX_SPANS]
    )
    more = f"<p>{len(rows) - MAX_SPANS:,} more are left out here.</p>" if len(rows) > MAX_SPANS else ""
    heading = both("Not read, or read in part", "읽지 못했거나 일부만 읽음")
    return f'<section class="card"><h2>{heading}</h2>\n<ul class="notes">\n{items}\n</ul>{more}</section>'


def _look_troubles(look: FrameLook) -> Iterable[tuple[float, float, str, str, str]]:
    if look.failed:
        yield look.time_s, look.time_s, "frame failed", "화면 실패", look.failed
    if look.partly:
        yield look.time_s, look.time_s, "read in part", "일부만 읽음", look.partly
    if look.undetected_ink and look.same_as_s is None:
        places = len(look.undetected_ink)
        yield look.time_s, look.time_s, "seen, not read", "읽지 못함", f"{places} place{'s' if places > 1 else ''}"


def _when(start_s: float, end_s: float) -> str:
    return clock(start_s) if end_s - start_s < ROUNDING_S else f"{clock(start_s)}–{clock(end_s)}"


def _how_to_read(looks: VideoLooks) -> str:
    english = (
        f"One frame was read every {looks.interval_s:g} s{' and at every cut' if looks.cuts else ''}. "
        "A showing therefore has two times: what is sure, between frames that show it and lie at most "
        f"{BRIDGED_S:g} s apart, and what is possible, up to the frames that do not. "
        "What is shorter than the step may be missed. "
        "A number is the same thing in the tables and in both pictures."
    )
    korean = (
        f"{looks.interval_s:g}초마다{' 그리고 장면이 바뀔 때마다' if looks.cuts else ''} 한 화면씩 읽었습니다. "
        "노출 시간은 확실한 시간과 가능한 시간으로 나누어 적습니다."
    )
    return f'<section class="card"><p>{both(english, korean)}</p></section>'


def _notes(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{text_html(note)}</li>" for note in notes)
    return f'<section class="card"><h2>{both("Notes", "참고")}</h2><ul class="notes">{items}</ul></section>'
