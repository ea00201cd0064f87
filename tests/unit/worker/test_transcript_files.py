"""The files of a transcript: words at their times, and what was not heard in plain sight."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.pipelines.transcript import MAX_LISTED_SPANS, Said, SoundSpan, Transcript, listed
from sam2_mcp_worker.pipelines.transcript_files import LOW_QUALITY, TRANSCRIPT_TYPES, transcript_files

TIME = re.compile(r"(\d+):(\d\d):(\d\d)[.,](\d{3})")


def transcript(*said: Said, spans: tuple[SoundSpan, ...] = (), low_quality: bool = False) -> Transcript:
    end_s = spans[-1].end_s if spans else 10.0
    spans = spans or (SoundSpan(0, 10.0, "heard"),)
    return Transcript("광고.mp4", 0.0, end_s, "whisper base (local)", low_quality, "ko", said, spans)


def texts(of: Transcript) -> dict[str, str]:
    return {suffix: data.decode("utf-8") for suffix, data in transcript_files(of).items()}


def test_words_stand_at_their_times_in_every_file() -> None:
    files = texts(transcript(Said(3661.5, 3662.25, "보험료는  매월\n바뀝니다"), Said(3663.0, 3664.0, "second")))
    assert set(files) == set(TRANSCRIPT_TYPES)
    assert "[01:01:01.500 - 01:01:02.250] 보험료는 매월 바뀝니다\n" in files["txt"]
    assert files["srt"].startswith("1\n01:01:01,500 --> 01:01:02,250\n보험료는 매월 바뀝니다\n\n2\n01:01:03,000 --> ")
    assert files["vtt"].startswith("WEBVTT\n\nNOTE\n")
    assert "\n\n01:01:01.500 --> 01:01:02.250\n보험료는 매월 바뀝니다\n" in files["vtt"]
    told = json.loads(files["json"])
    assert [(one["start_s"], one["text"]) for one in told["said"]] == [
        (3661.5, "보험료는  매월\n바뀝니다"),
        (3663.0, "second"),
    ]


def test_what_was_not_heard_stands_in_its_place_in_every_file() -> None:
    spans = (
        SoundSpan(0, 4, "heard"),
        SoundSpan(4, 6, "silent"),
        SoundSpan(6, 8, "unheard", "the same words over and over"),
        SoundSpan(8, 9, "failed", "the sound is damaged"),
        SoundSpan(9, 11, "unreached"),
        SoundSpan(11, 20, "unreached"),
    )
    files = texts(transcript(Said(0.5, 1.5, "one"), Said(12, 13, "two"), spans=spans))
    for suffix in ("txt", "srt", "vtt"):
        order = ["one", "over and over", "damaged", "not listened to yet", "two"]
        places = [files[suffix].rindex(words) for words in order]
        assert places == sorted(places)
        assert len(re.findall("아직 듣지 않음]", files[suffix])) == 1  # neighbours are one
    assert "00:00:09,000 --> 00:00:20,000" in files["srt"]
    told = json.loads(files["json"])
    assert told["seconds"] == {"heard": 4, "silent": 2, "unheard": 2, "failed": 1, "unreached": 11}
    assert [span["became"] for span in told["spans"]].count("unreached") == 2


def test_no_words_means_no_speech_only_where_all_was_heard() -> None:
    quiet = (SoundSpan(0, 3, "heard"), SoundSpan(3, 9, "silent"))
    assert "There is no speech." in texts(transcript(spans=quiet))["txt"]
    gap = texts(transcript(spans=(*quiet, SoundSpan(9, 10, "unheard", "no engine"))))
    for suffix in ("txt", "vtt"):
        assert "There is no speech." not in gap[suffix]
        assert "cannot be told" in gap[suffix]


def test_low_quality_is_said_beside_the_words() -> None:
    files = texts(transcript(Said(0, 1, "one"), low_quality=True))
    assert LOW_QUALITY in files["txt"] and LOW_QUALITY in files["vtt"]
    assert json.loads(files["json"])["notes"] == [LOW_QUALITY]


@given(
    st.lists(st.tuples(st.floats(0, 9000), st.floats(0, 9000), st.text(st.characters(), max_size=40)), max_size=6),
    st.text(st.characters(), max_size=20),
)
def test_no_words_break_a_file(raw: list[tuple[float, float, str]], reason: str) -> None:
    said = tuple(Said(min(a, b), max(a, b), text) for a, b, text in sorted(raw))
    spans = (SoundSpan(0, 5, "heard"), SoundSpan(5, 9000, "failed", reason))
    files = texts(transcript(*said, spans=spans))
    cues = len(said) + 1
    assert len(re.findall("-->", files["srt"])) == len(re.findall("-->", files["vtt"])) == cues
    blocks = files["srt"].removesuffix("\n\n").split("\n\n")
    assert [block.split("\n")[0] for block in blocks] == [str(number) for number in range(1, cues + 1)]
    assert len(files["vtt"].rstrip("\n").split("\n\n")) == cues + 2
    for start, end in (block.split("\n")[1].split(" --> ") for block in blocks):
        assert TIME.fullmatch(start) and TIME.fullmatch(end) and start < end
    assert len(json.loads(files["json"])["said"]) == len(said)


def test_words_before_the_first_frame_keep_their_times_where_a_file_can_hold_them() -> None:
    words = Transcript("a.mp4", -2.5, 1.0, "ears", False, None, (Said(-1.25, -0.5, "early"),), ())
    files = texts(words)
    assert "Transcript of a.mp4, -00:00:02.500 to 00:00:01.000\n" in files["txt"]
    assert "[-00:00:01.250 - -00:00:00.500] early\n" in files["txt"]
    assert "00:00:00,000 --> 00:00:00,001\nearly" in files["srt"]
    assert "00:00:00.000 --> 00:00:00.001\nearly" in files["vtt"]
    assert json.loads(files["json"])["said"][0]["start_s"] == -1.25


def test_a_result_names_some_spans_and_short_reasons() -> None:
    named = listed([SoundSpan(number, number + 1, "failed", "x" * 300) for number in range(100)])
    assert len(named) == MAX_LISTED_SPANS
    assert {len(span.reason) for span in named} == {160}
