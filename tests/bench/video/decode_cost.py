"""What sampling a video costs beside nothing but decoding it with PyAV, in processor seconds a minute of 1080p.

    python -m tests.bench.video.decode_cost [--seconds 20] [--rounds 3] [--check] [--json]

Three videos: pictures that stand still (every frame looked at, hardly one written), a camera that moves all the time
(every sample is another picture and is written as raw RGB) and one that cuts. Plain decoding is the same two threads
without looking at anything; beside it the same with as many frames taken over as RGB as the scan wrote, in the
quality in which they are read, since whoever reads them needs them. Runs alternate in one process, so that a busy
machine slows all of them down; the least of the rounds counts.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
from numpy.typing import NDArray
from tests.bench.claude.command import finish, options

from sam2_mcp_worker.media.video import MAX_FRAME_PIXELS
from sam2_mcp_worker.media.video_file import DECODER_THREADS
from sam2_mcp_worker.media.video_pixels import Turn, to_rgb
from sam2_mcp_worker.media.video_scan import STEP_BUDGET_S, STEP_BYTES, ScanPlan
from sam2_mcp_worker.media.video_scan_child import video_scan

WIDTH_PX, HEIGHT_PX, FPS = 1920, 1080, 30
INTERVAL_S = 0.5
SEGMENT = 16
# Of the mission: looking for cuts and for pictures that look the same must not cost more than a fifth of the decoding.
BOUND = 1.2


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds for one minute of video."""

    video: str
    plain_s: float
    plain_with_rgb_s: float
    scan_s: float
    samples: int
    written: int

    @property
    def ratio(self) -> float:
        """The scan beside decoding and taking over the frames that it wrote."""
        return self.scan_s / self.plain_with_rgb_s


def scene(seed: int) -> NDArray[Any]:
    """A textured ground larger than the frame."""
    rng = np.random.default_rng(seed)
    ground = cv2.resize(rng.integers(0, 255, (90, 160, 3), dtype=np.uint8), (WIDTH_PX + 640, HEIGHT_PX + 360))
    textured: NDArray[Any] = cv2.add(ground, rng.integers(0, 12, ground.shape, dtype=np.uint8))
    return textured


def write_video(path: Path, seconds: int, place: Callable[[int], tuple[int, int, int]]) -> None:
    """Frame i shows `(scene, x, y)`: the place of a scene that the camera looks at."""
    scenes = [scene(seed) for seed in range(2)]
    with av.open(str(path), "w") as out:
        stream: Any = out.add_stream("libx264", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = WIDTH_PX, HEIGHT_PX, "yuv420p"
        stream.options = {"preset": "veryfast", "crf": "23", "bf": "2", "g": "250"}
        for index in range(seconds * FPS):
            number, x, y = place(index)
            picture = np.ascontiguousarray(scenes[number][y : y + HEIGHT_PX, x : x + WIDTH_PX])
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, FPS)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))


VIDEOS: dict[str, Callable[[int], tuple[int, int, int]]] = {
    "still": lambda i: (0, 100, 100),
    "moving camera": lambda i: (0, i % 600, i // 4 % 300),
    "a cut every 3 s": lambda i: (i // (3 * FPS) % 2, 100 + i % 50, 100),
}


def plain(path: Path, taken: int) -> None:
    """Decode everything; take over so many frames, evenly."""
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count, stream.thread_type = DECODER_THREADS, "AUTO"
        every = stream.frames // taken if taken else 0
        for index, frame in enumerate(container.decode(stream)):
            if every and index % every == 0:
                to_rgb(frame, (WIDTH_PX, HEIGHT_PX), Turn.of(frame))


def scan(path: Path, seconds: int, folder: Path) -> tuple[int, int]:
    """Sample everything as inspect_video does; how many samples there were, and how many were written."""
    plan = ScanPlan(0.0, seconds, INTERVAL_S, cuts=True)
    counts = [
        (sample["name"] is not None, (folder / sample["name"]).unlink() if sample["name"] else None)
        for first in range(0, plan.grid_count, SEGMENT)
        for sample in _segment(path, plan, first, folder)
    ]
    return len(counts), sum(written for written, _ in counts)


def _segment(path: Path, plan: ScanPlan, first: int, folder: Path) -> Iterator[dict[str, Any]]:
    params = {
        "path": str(path),
        "max_pixels": MAX_FRAME_PIXELS,
        "size_px": [WIDTH_PX, HEIGHT_PX],
        "plan": {"start_s": plan.start_s, "end_s": plan.end_s, "interval_s": plan.interval_s, "cuts": plan.cuts},
        "first_number": first,
        "count": min(SEGMENT, plan.grid_count - first),
        "out_dir": str(folder),
        "budget_s": STEP_BUDGET_S,
        "most_bytes": STEP_BYTES,
    }
    known, end = 0, None
    while end is None:
        step = video_scan({**params, "known": known})
        known, end = known + len(step["samples"]), step["end"]
        yield from step["samples"]


def measure(name: str, path: Path, seconds: int, rounds: int, folder: Path) -> Cost:
    """The least of the rounds, for a minute."""
    samples, written = scan(path, seconds, folder)

    def cost(work: Callable[[], Any]) -> float:
        begun = time.process_time()
        work()
        return (time.process_time() - begun) * 60 / seconds

    works = (lambda: plain(path, 0), lambda: plain(path, written), lambda: scan(path, seconds, folder))
    runs = [[cost(work) for work in works] for _ in range(rounds)]
    plain_s, plain_with_rgb_s, scan_s = (min(run[i] for run in runs) for i in range(len(works)))
    return Cost(name, plain_s, plain_with_rgb_s, scan_s, samples, written)


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = options("decode_cost", "video")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args(argv)
    costs = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, place in VIDEOS.items():
            path = folder / "video.mp4"
            write_video(path, arguments.seconds, place)
            costs.append(measure(name, path, arguments.seconds, arguments.rounds, folder))
    rows = [
        f"| {cost.video} | {cost.plain_s:.2f} | {cost.plain_with_rgb_s:.2f} | {cost.scan_s:.2f} | {cost.ratio:.2f} | "
        f"{cost.scan_s / cost.plain_s:.2f} | {cost.samples} | {cost.written} |"
        for cost in costs
    ]
    head = (
        "| 1080p30 H.264, processor s a minute | plain PyAV | plain + RGB of the frames written | scan | ratio | "
        "to plain alone | samples | written |\n|---|---|---|---|---|---|---|---|"
    )
    short = [f"{cost.video}: {cost.ratio:.2f} > {BOUND}" for cost in costs if cost.ratio > BOUND]
    return finish(arguments, [asdict(cost) for cost in costs], "\n".join([head, *rows]), short)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
