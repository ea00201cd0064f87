"""Where the time of a tracked frame goes, and how it compares with ultralytics' own predictor in the same run.

    python -m tests.bench.sam.track_split [--frames 8] [--objects 1] [--threads 2] [--json]

Random weights of the true architecture: times are real, masks are not. Frames count once the memory is full (after 16),
as medians. Beside the seconds stand those of all cores together: on a machine with other work only they are steady.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from tests.fakes.sam2_tracking import Rgb, moving_shapes, telling_network
from tests.fakes.videos import even_times, write_clip

from sam2_mcp_worker.engines.ports import ObjectPrompt
from sam2_mcp_worker.engines.sam2_encoder import Sam2Encoder
from sam2_mcp_worker.engines.sam2_memory_attention import Sam2MemoryAttention
from sam2_mcp_worker.engines.sam2_network import use_threads
from sam2_mcp_worker.engines.sam2_tracker import TRACK_QUALITIES, Sam2Tracker

SIZE_PX = (640, 360)
PLAIN_SIDE_PX = 512  # the size at which issue and reference compare
FILLED_AFTER = 16  # frames until all memories and pointers take part
BOXES = ((80, 90, 240, 180), (432, 180, 560, 270), (20, 20, 120, 100), (300, 200, 500, 340))


@dataclass(slots=True)
class Stage:
    """Time spent in one part, as wall clock and summed over all cores."""

    wall_s: float = 0.0
    cores_s: float = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time added here."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            wall, cores = time.perf_counter(), time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.wall_s += time.perf_counter() - wall
                self.cores_s += time.process_time() - cores

        return timed


@dataclass(frozen=True, slots=True)
class Row:
    """Medians over frames, seconds."""

    what: str
    wall_s: float
    cores_s: float
    stages: dict[str, tuple[float, float]]


def ours(frames: int, objects: int, threads: int, folder: Path) -> Iterator[Row]:
    """One row for each quality."""
    network: Any = telling_network()
    use_threads(threads)
    encoder: Any = Sam2Encoder(network, sha256="0" * 64, threads=threads, records_dir=folder)
    stages = {name: Stage() for name in ("encoder", "memory attention", "decoder", "memory encoder")}
    encoder.features = stages["encoder"].around(encoder.features)
    network._forward_sam_heads = stages["decoder"].around(network._forward_sam_heads)
    network._encode_new_memory = stages["memory encoder"].around(network._encode_new_memory)
    plain_call = Sam2MemoryAttention.__call__
    Sam2MemoryAttention.__call__ = stages["memory attention"].around(plain_call)  # type: ignore[method-assign]
    tracker = Sam2Tracker(network, encoder, threads=threads)
    clip = moving_shapes(FILLED_AFTER + frames, SIZE_PX)
    prompts = [ObjectPrompt(box) for box in BOXES[:objects]]
    for quality in TRACK_QUALITIES:
        session, _ = tracker.start(clip[0], prompts, quality)
        taken: list[dict[str, Stage]] = []
        for frame in clip[1:]:
            for stage in stages.values():
                stage.wall_s = stage.cores_s = 0.0
            whole = Stage()
            whole.around(tracker.step)(session, frame)
            taken.append({"frame": whole, **{n: Stage(s.wall_s, s.cores_s) for n, s in stages.items()}})
        full = taken[FILLED_AFTER - 1 :]
        medians = {name: _medians([entry[name] for entry in full]) for name in full[0]}
        yield Row(f"{quality}, {objects} objects", *medians.pop("frame"), medians)
    Sam2MemoryAttention.__call__ = plain_call  # type: ignore[method-assign]


def plain(frames: int, objects: int, folder: Path) -> Row:
    """ultralytics' SAM2VideoPredictor as it comes: the threads that it chooses, at 512 px."""
    from ultralytics.models.sam import SAM2VideoPredictor

    torch.save({"model": telling_network().state_dict()}, folder / "sam2.1_t.pt")
    clip: list[Rgb] = moving_shapes(FILLED_AFTER + frames, SIZE_PX)
    write_clip(folder / "clip.mp4", clip, even_times(len(clip), 24))
    settings = {"task": "segment", "mode": "predict", "imgsz": PLAIN_SIDE_PX, "verbose": False, "save": False}
    predictor = SAM2VideoPredictor(overrides={**settings, "model": str(folder / "sam2.1_t.pt")})
    results = iter(predictor(source=str(folder / "clip.mp4"), bboxes=[list(b) for b in BOXES[:objects]], stream=True))
    taken = []
    for _ in clip:
        step = Stage()
        step.around(next)(results)
        taken.append(step)
    return Row(f"ultralytics, {objects} objects", *_medians(taken[FILLED_AFTER:]), {})


def _medians(stages: list[Stage]) -> tuple[float, float]:
    wall, cores = statistics.median(s.wall_s for s in stages), statistics.median(s.cores_s for s in stages)
    return round(wall, 3), round(cores, 3)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=8)
    parser.add_argument("--objects", type=int, default=1, choices=range(1, len(BOXES) + 1))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            *ours(arguments.frames, arguments.objects, arguments.threads, Path(folder)),
            plain(arguments.frames, arguments.objects, Path(folder)),
        ]
    if arguments.json:
        sys.stdout.write(json.dumps([asdict(row) for row in rows]) + "\n")
        return 0
    for row in rows:
        ratio = rows[-1].wall_s / row.wall_s
        sys.stdout.write(f"{row.what:24} {row.wall_s:6.3f} s ({row.cores_s:.3f} over the cores), {ratio:.2f} x plain\n")
        for name, (wall_s, cores_s) in row.stages.items():
            sys.stdout.write(f"    {name:20} {wall_s:6.3f} s ({cores_s:.3f})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
