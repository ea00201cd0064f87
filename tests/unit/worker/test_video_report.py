"""The report of a video: what was not read comes first, absence is only said where it is found, nothing acts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.inspections import NOTICE, exposures, findings, inspection, line, look, looks, text
from tests.fakes.report_reader import ALLOWED_ATTRIBUTES, ALLOWED_TAGS, HOSTILE, read, words

from sam2_mcp_worker.checks.exposure import Check
from sam2_mcp_worker.pipelines.frame_looks import Span
from sam2_mcp_worker.pipelines.inspected_video import InspectedVideo
from sam2_mcp_worker.pipelines.video_finding_types import PhraseFinding, VideoFindings
from sam2_mcp_worker.pipelines.video_report import MAX_SPANS, ReportPictures, render_video_report
from sam2_mcp_worker.pipelines.video_report_tables import MAX_TEXTS, clock

PATH = Path("spot.mp4")
# A cell and a line break are as good as a space to whoever reads.
SPACED = ("</td>", "<br>")
JPEG = b"\xff\xd8\xff\xe0 picture"
WHOLE = looks(frames=(look(0.0, lines=(line("a"),)), look(0.5)))


def rendered(pictures: ReportPictures | None = None, of: InspectedVideo | None = None) -> str:
    return render_video_report(of or inspection(PATH), pictures or ReportPictures(JPEG, JPEG), "2026-11-30T16:00+00:00")


def seen(html: str) -> str:
    for end in SPACED:
        html = html.replace(end, f" {end}")
    return words(html)


def test_a_whole_reading_says_so_and_from_when_to_when() -> None:
    said = seen(rendered(of=inspection(PATH, looks=replace(WHOLE, failed=()))))
    assert "Complete: 0:00.00 to 0:03.00 was read." in said and "모두 읽었습니다" in said
    assert "Not read, or read in part" not in said


def test_what_was_not_read_stands_first_and_with_its_reason() -> None:
    html = rendered(of=inspection(PATH, looks=looks(complete=False)))
    said = seen(html)
    assert "Incomplete: not reached: 0:02.50–0:03.00; cannot be decoded: 0:01.60–0:01.90; 1 frame failed" in said
    assert "may be shown in what was not read" in said
    assert said.index("Incomplete") < said.index("Time line")
    for reason in ("the stream is damaged", "frame_damaged: it is damaged", "a tile failed"):
        assert reason in said
    assert "seen, not read 읽지 못함: 1 place" in said
    assert "Complete:" not in said


def test_every_finding_has_its_number_times_sizes_and_verdict() -> None:
    said = seen(rendered())
    for told in (
        "coins or banknotes shown 나옴 2.00 s 0:00.00–0:02.00 4 70.0 px (39.00%) 0:02.00",
        "premium amount cannot tell 판단할 수 없음 a frame failed",
        "약관을 확인하세요 shown 나옴 0.00-0.75 s 0:00.75–0:01.50 1 12.0 px (6.70%) 0:01.00 약관을 확인하세오 (0.98)",
        "not met 미달 time 시간 0 s–0.50 s (minimum 2 s) seen in one frame only",
        "Minimums: 24 px, 2.00%, 2 s. The operator's own values, not those of a law. Set by the test.",
        "Smallest text: 12.0 px (6.70%), 0:01.00",
    ):
        assert told in said, told


def test_what_differs_or_is_missing_is_never_told_as_shown() -> None:
    found = replace(
        findings(),
        phrases=(
            PhraseFinding("1억원", "altered", differences=("1억원 -> 5천만원",), read_as="5천만원", score=0.9),
            PhraseFinding("환급", "cannot_tell", "0:02.5 to 0:03 was not reached"),
            PhraseFinding("해지", "not_shown"),
        ),
    )
    said = seen(rendered(of=inspection(PATH, findings=found)))
    assert "altered" in said and "1억원 -> 5천만원" in said
    assert "환급 cannot tell 판단할 수 없음 0:02.5 to 0:03 was not reached" in said
    assert "해지 not shown 나오지 않음" in said


def test_regions_that_nobody_looked_for_are_not_called_absent() -> None:
    html = rendered(of=inspection(PATH, not_looked="nobody looked: no vision provider is set"))
    assert "nobody looked: no vision provider is set" in seen(html)


def test_without_findings_rules_or_pictures_there_is_a_report_too() -> None:
    bare = inspection(PATH, findings=VideoFindings((), (), (), (), None), rules=None, looks=looks(frames=()))
    said = seen(rendered(ReportPictures(None, b"GIF89a"), bare))
    assert "no frame was read" in said
    assert said.count("There is no such picture.") == 2
    assert "Minimums" not in said


def test_long_lists_are_cut_and_say_so() -> None:
    texts = tuple(text(str(i), f"line {i}", NOTICE, exposures((i, i, i, i))) for i in range(MAX_TEXTS + 7))
    spans = tuple(Span(i, i + 0.5, "damaged") for i in range(MAX_SPANS + 40))
    of = inspection(PATH, findings=replace(findings(), texts=texts), looks=replace(looks(), failed=spans))
    said = seen(rendered(of=of))
    assert "7 more lines are left out here" in said and f"line {MAX_TEXTS + 1}" not in said
    assert "more are left out here." in said
    often = exposures(*((i, i, i + 0.5, i + 0.5) for i in range(30)))
    of = inspection(PATH, findings=replace(findings(), texts=(text("a", "a", NOTICE, often),)))
    assert "+18" in seen(rendered(of=of))


def hostile(said: str) -> InspectedVideo:
    found = findings(phrase=said, label=said)
    found = replace(
        found,
        texts=(text("h", said, NOTICE, exposures((0, 0, 1, 1)), checks=(Check("min_exposure_s", 2, 1, "met", said),)),),
    )
    frames = (look(0.0, lines=(line(said),)), look(0.5, failed=said, regions=None), look(1.0, partly=said))
    of = inspection(PATH, findings=found, looks=looks(frames=frames), engine=said, notes=(said,), not_looked=said)
    return replace(of, stored=replace(of.stored, name=said))


HARMLESS_TAGS = [tag for tag, _ in read(rendered(of=hostile("x"))).tags]


def test_nothing_from_a_video_acts() -> None:
    for tag, attributes in read(rendered(of=hostile(HOSTILE))).tags:
        assert tag in ALLOWED_TAGS
        assert set(attributes) <= ALLOWED_ATTRIBUTES
        assert (attributes.get("src") or "data:image/jpeg;base64,").startswith("data:image/jpeg;base64,")
    assert HOSTILE in seen(rendered(of=hostile(HOSTILE)))


@settings(max_examples=30)
@given(st.text(st.characters()))
def test_no_words_change_the_structure(said: str) -> None:
    html = rendered(of=hostile(f"x{said}"))
    html.encode("utf-8")
    assert [tag for tag, _ in read(html).tags] == HARMLESS_TAGS


def test_times_are_told_as_people_read_them() -> None:
    assert [clock(time_s) for time_s in (0, 59.999, 61.5, 3661.25)] == ["0:00.00", "1:00.00", "1:01.50", "1:01:01.25"]
