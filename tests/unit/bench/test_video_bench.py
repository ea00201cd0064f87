"""The judges of the video benches: they find out what they are there to find out."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest
from tests.bench.video.hour import Account, LongVideo, lost_lines
from tests.bench.video.slides import LENGTH_S, slides
from tests.fakes.long_videos import repeat_video
from tests.fakes.spot_video import LABELS, NOTICE, NOTICE_PX, PREMIUM, PREMIUM_PX, wrong_findings
from tests.fakes.videos import index_clip, read_index

STEP_S = 0.5


def shown(name: str, value: str, span: list[float], height_px: float) -> dict[str, Any]:
    place = {"time_s": 0.0, "box_xyxy_px": [0, 0, 1, 1], "height_px": height_px}
    return {name: value, "state": "shown", "exposures_s": [span], "greatest": place, "smallest_text": place}


def right_result() -> dict[str, Any]:
    """What a perfect inspection at a step of 0.5 s says of the spot."""
    coin, premium, notice = [0.0, 0.0, 5.5, 6.0], [0.0, 0.0, 1.5, 2.0], [3.0, 3.5, 3.5, 4.0]
    return {
        "labels": [
            shown("label", label, span, height)
            for label, span, height in zip(LABELS, (coin, premium, notice), (120, PREMIUM_PX, NOTICE_PX), strict=True)
        ],
        "phrases": [
            shown("phrase", PREMIUM, premium, PREMIUM_PX),
            shown("phrase", NOTICE, notice, NOTICE_PX),
        ],
        "smallest_text": {"height_px": 12.4},
    }


def test_a_right_result_is_right() -> None:
    assert wrong_findings(right_result(), STEP_S) == []


@pytest.mark.parametrize(
    ("part", "number", "span", "words"),
    [
        ("labels", 1, [0.0, 0.0, 2.5, 3.0], "sure behind it"),
        ("labels", 1, [0.0, 0.0, 1.0, 1.4], "ends early"),
        ("labels", 2, [3.0, 3.0, 3.5, 4.0], "sure before it"),
        ("labels", 2, [2.5, 3.5, 3.5, 4.0], "possible before it"),
        ("phrases", 1, [3.3, 3.5, 3.5, 4.0], "not possible at its beginning"),
        ("phrases", 0, [0.0, 0.0, 1.5, 1.9], "not possible at its end"),
        ("phrases", 0, [0.0, 1.0, 1.5, 2.0], "begins late"),
        ("phrases", 0, [0.0, 0.0, 1.5, 2.9], "possible behind it"),
    ],
)
def test_each_wrong_time_is_found(part: str, number: int, span: list[float], words: str) -> None:
    result = right_result()
    result[part][number]["exposures_s"] = [span]
    assert [words in claim for claim in wrong_findings(result, STEP_S)].count(True) == 1


def test_wrong_heights_states_and_labels_are_found() -> None:
    result = right_result()
    result["labels"][2]["smallest_text"] = {"height_px": 14.0}
    result["phrases"][0]["state"] = "cannot_tell"
    result["smallest_text"] = None
    assert [claim.partition(":")[0] for claim in wrong_findings(result, STEP_S)] == [
        "disclaimer",
        "premium",
        "smallest",
    ]
    result["labels"].reverse()
    assert len(wrong_findings(result, STEP_S)) == 1


def texts_of(minutes: int) -> list[dict[str, Any]]:
    return [
        {"text": slide.lines[0], "exposures_s": [[0.0, at_s + slide.start_s, at_s + slide.end_s - STEP_S, 0.0]]}
        for at_s in range(0, minutes * LENGTH_S, LENGTH_S)
        for slide in slides()
    ]


def test_a_line_that_is_missing_or_at_another_time_is_lost() -> None:
    texts = texts_of(3)
    assert lost_lines(3, STEP_S, texts) == []
    texts[4]["exposures_s"][0][1] += 2 * STEP_S
    assert len(lost_lines(3, STEP_S, texts[:-1])) == 2


def account(**changed: float) -> Account:
    told = {"took_s": 20.0, "asked_s": 120.0, "read_s": 120.0, "failed_s": 0.0, "unreached_s": 0.0}
    return Account(**(told | {"server_mb": 150.0, "tree_mb": 900.0} | changed), frames={"sampled": 240})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"took_s": 27.5}, "a call took"),
        ({"read_s": 119.0}, "does not add up"),
        ({"read_s": 100.0, "failed_s": 20.0}, "not the whole range"),
        ({"server_mb": 250.0}, "the server grew"),
        ({"tree_mb": 1900.0}, "all processes grew"),
    ],
)
def test_what_an_hour_must_not_do_is_found(changed: dict[str, float], words: str) -> None:
    good = LongVideo(2, STEP_S, [account(), account(), account()])
    assert good.shortcomings() == []
    good.accounts.append(account(**changed))
    assert [words in claim for claim in good.shortcomings()] == [True]
    assert good.as_dict()["calls"] == 4


def test_a_repeated_video_goes_on_without_a_gap(tmp_path: Path) -> None:
    clip = index_clip(tmp_path / "one.mp4", frames=48)
    repeated = repeat_video(clip.path, tmp_path / "three.mp4", 3, Fraction(2))
    with av.open(str(repeated)) as container:
        seen = [
            (float(frame.time or 0), read_index(frame.to_ndarray(format="rgb24")))
            for frame in container.decode(video=0)
        ]
    assert [index for _, index in seen] == [*range(48)] * 3
    assert [time_s - seen[0][0] for time_s, _ in seen] == pytest.approx([index / 24 for index in range(144)], abs=1e-4)
