"""An answer of a speech endpoint is a transcript with times that can be relied on, or none: whatever it holds."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.engines.speech_languages import LANGUAGES, language_code
from sam2_mcp_worker.engines.speech_wire import read_transcript

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
SEGMENT = st.fixed_dictionaries(
    {"start": ANYTHING | st.floats(0, 9), "end": ANYTHING | st.floats(9, 30), "text": ANYTHING | st.just("words")},
    optional={"no_speech_prob": ANYTHING, "avg_logprob": ANYTHING},
)
ANSWER = st.fixed_dictionaries(
    {}, optional={"text": ANYTHING, "segments": ANYTHING | st.lists(SEGMENT, max_size=3), "language": ANYTHING}
)
TOO_MANY = json.dumps({"text": "a", "segments": [{"start": 0, "end": 1, "text": "a"}] * 1001}).encode()


@given(ANYTHING | ANSWER)
def test_whatever_comes_is_a_transcript_or_none(answer: object) -> None:
    transcript = read_transcript(json.dumps(answer).encode(), 9.0)
    if transcript is None:
        return
    assert transcript.language is None or transcript.language in LANGUAGES
    for one in transcript.said:
        assert 0 <= one.start_s <= one.end_s < math.inf
        assert all(value is None or math.isfinite(value) for value in (one.no_speech_prob, one.mean_log_prob))
    if transcript.times == "piece":
        assert [(one.start_s, one.end_s) for one in transcript.said] in ([], [(0.0, 9.0)])


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[1]", b"{", b"\xff\xfe", b"[" * 100_000, b'{"segments": []}', TOO_MANY]
)
def test_what_is_no_answer_is_none(body: bytes) -> None:
    transcript = read_transcript(body, 9.0)
    assert transcript is None or transcript.said == ()


@pytest.mark.parametrize(
    ("told", "code"),
    [("korean", "ko"), ("ko-KR", "ko"), ("en_US", "en"), ("Haitian Creole", "ht"), ("klingon", None), (7, None)],
)
def test_a_language_is_known_by_code_or_name(told: object, code: str | None) -> None:
    assert language_code(told) == code


@pytest.mark.parametrize(
    "times",
    [
        '"start": -1, "end": 2',
        '"start": true, "end": 2',
        '"start": NaN, "end": 2',
        '"start": 0, "end": Infinity',
        '"start": 0, "end": 1e999',
        '"start": 3, "end": 2',
        f'"start": 0, "end": 1{"0" * 400}',
    ],
)
def test_no_time_is_believed_beside_one_that_is_none(times: str) -> None:
    body = f'{{"text": "one two", "segments": [{{"start": 0, "end": 1, "text": "one"}}, {{{times}, "text": "two"}}]}}'
    transcript = read_transcript(body.encode(), 9.0)
    assert transcript is not None and transcript.times == "piece"
    assert [(one.start_s, one.end_s, one.text) for one in transcript.said] == [(0.0, 9.0, "one two")]


def test_times_in_another_unit_do_not_lose_words() -> None:
    segments = [{"start": 0, "end": 4200, "text": "Read the"}, {"start": 4200, "end": 8000, "text": "terms"}]
    answers = ({"text": "Read the terms", "segments": segments}, {"segments": segments})  # in milliseconds
    for answer in answers:
        transcript = read_transcript(json.dumps(answer).encode(), 9.0)
        assert transcript is not None and transcript.times == "piece"
        assert [(one.start_s, one.end_s, one.text) for one in transcript.said] == [(0.0, 9.0, "Read the terms")]
