"""Wrong times among sampled frames: this worker's scan, and OpenCV asked for the same times, on videos of every kind.

    python -m tests.bench.video.time_truth [--check] [--json]

Every frame of the videos shows its number. A sample is wrong when it is not the frame on screen at the time that was
asked for, or when the time stated with it is not that of the frame that it shows. OpenCV is asked the two usual ways,
and for the very times of the frames, which suits it best: by a seek to the time (POS_MSEC), and by decoding all frames
and multiplying the time by the frame rate.
"""

from __future__ import annotations

import bisect
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
from tests.bench.claude.command import finish, options
from tests.fakes.coded_videos import CODED
from tests.fakes.videos import Clip, read_index

from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.video import MAX_FRAME_PIXELS
from sam2_mcp_worker.media.video_child import video_probe
from sam2_mcp_worker.media.video_scan_child import close_files, video_scan

# Matroska, FLV and WebP keep whole milliseconds.
ROUNDED_S = 6e-4
SAMPLES = 24
# No whole number of any frame length, so that no time that is asked for lies on the border of two frames.
FIRST_SHARE = 0.37


@dataclass(frozen=True, slots=True)
class Truth:
    """One video: how many samples, and how many of them are wrong. None: it cannot be read at all."""

    video: str
    asked: int
    scan_samples: int
    scan_wrong: int
    seek_wrong: int | None
    rate_wrong: int | None


def asked_times(clip: Clip) -> list[float]:
    """Evenly over the video, none within a rounding of the border of two frames."""
    length_s = clip.times_s[-1]
    step_s = length_s / SAMPLES
    times_s = [(number + FIRST_SHARE) * step_s for number in range(SAMPLES)]
    near_s = min(2 * ROUNDED_S, min(b - a for a, b in pairwise(clip.times_s)) / 8)
    return [at for at in times_s if min(abs(at - border) for border in clip.times_s) > near_s]


def right_frame(clip: Clip, time_s: float) -> int:
    """Which frame is on screen."""
    return bisect.bisect_right(clip.times_s, time_s) - 1


def scan(clip: Clip, folder: Path) -> tuple[int, int]:
    """Samples on the grid and around cuts, and how many of them are wrong or missing."""
    facts = video_probe({"path": str(clip.path), "max_pixels": MAX_FRAME_PIXELS, "max_video_s": 9999})
    size_px = (facts["width_px"], facts["height_px"])
    step_s = clip.times_s[-1] / SAMPLES
    plan = {"start_s": FIRST_SHARE * step_s, "end_s": clip.times_s[-1], "interval_s": step_s, "cuts": True}
    shown: dict[int, float] = {}
    wrong = 0
    for sample in _samples(clip.path, plan, size_px, folder):
        number = read_index(PixelFile(folder / sample["name"], *size_px).map_rgb()) if sample["name"] else None
        if number is None or abs(clip.times_s[number] - sample["time_s"]) > ROUNDED_S:
            wrong += sample["same_as"] is None
        else:
            shown[number] = sample["time_s"]
    missing = {right_frame(clip, at) for at in asked_times(clip)} - set(shown)
    close_files()
    return len(shown) + wrong, wrong + len(missing)


def _samples(path: Path, plan: dict[str, Any], size_px: tuple[int, int], folder: Path) -> Iterator[dict[str, Any]]:
    params = {
        "path": str(path),
        "max_pixels": MAX_FRAME_PIXELS,
        "size_px": list(size_px),
        "plan": plan,
        "out_dir": str(folder),
        "budget_s": 60.0,
        "most_bytes": 2**30,
        "known": 0,
    }
    for number in range(SAMPLES):  # each time of the grid a segment of its own, so that none is the same as another
        step = video_scan({**params, "first_number": number, "count": 1})
        yield from step["samples"]


def seek(clip: Clip) -> int | None:
    """How many frames OpenCV gets wrong by seeking to a time."""
    capture = cv2.VideoCapture(str(clip.path))
    if not capture.isOpened():
        return None
    wrong = 0
    for right in (right_frame(clip, at) for at in asked_times(clip)):
        capture.set(cv2.CAP_PROP_POS_MSEC, clip.times_s[right] * 1000)
        fine, picture = capture.read()
        wrong += not fine or read_index(picture[:, :, ::-1]) != right
    return wrong


def by_rate(clip: Clip) -> int | None:
    """How many frames OpenCV gets wrong by counting and dividing by the frame rate that it tells."""
    capture = cv2.VideoCapture(str(clip.path))
    rate = capture.get(cv2.CAP_PROP_FPS)
    if not capture.isOpened() or rate <= 0:
        return None
    numbers = []
    while True:
        fine, picture = capture.read()
        if not fine:
            break
        numbers.append(read_index(picture[:, :, ::-1]))
    rights = [right_frame(clip, at) for at in asked_times(clip)]
    places = [(round(clip.times_s[right] * rate), right) for right in rights]
    return sum(place >= len(numbers) or numbers[place] != right for place, right in places)


def measure(kind: str, folder: Path) -> Truth:
    """One row."""
    clip = CODED[kind](folder)
    samples, wrong = scan(clip, folder)
    return Truth(kind, len(asked_times(clip)), samples, wrong, seek(clip), by_rate(clip))


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    arguments = options("time_truth", "video").parse_args(argv)
    rows = []
    for kind in CODED:
        with tempfile.TemporaryDirectory() as temporary:
            rows.append(measure(kind, Path(temporary)))
    shown = [
        "| video | times asked | samples of the scan | wrong | OpenCV by seek, wrong | OpenCV by rate, wrong |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row.video} | {row.asked} | {row.scan_samples} | {row.scan_wrong} | {_or_dash(row.seek_wrong)} | "
            f"{_or_dash(row.rate_wrong)} |"
            for row in rows
        ),
    ]
    short = [f"{row.video}: {row.scan_wrong} wrong" for row in rows if row.scan_wrong]
    return finish(arguments, [asdict(row) for row in rows], "\n".join(shown), short)


def _or_dash(count: int | None) -> str:
    return "not read" if count is None else str(count)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
