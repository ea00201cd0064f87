"""Video tasks of the decoder children: facts, times and frames as raw RGB. See video.py for the server's side."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import cv2
from av.audio.codeccontext import AudioCodecContext
from av.audio.stream import AudioStream

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pixel_writer import pixel_file
from sam2_mcp_worker.media.video_file import damaged
from sam2_mcp_worker.media.video_pixels import Rgb, Turn, to_rgb
from sam2_mcp_worker.media.video_reader import SAME_FRAME_S, Decoded, VideoReader

# Looking through the packets of a minute of 1080p takes 0.05 s; a file of which more is left has its header believed.
SCAN_S = 3.0
# A file that ends this much before it says it does was cut off. Audio often runs on by a part of a second.
_CUT_OFF_S = 0.5
_CUT_OFF_SHARE = 0.02
# Of seconds, in results.
DECIMALS = 6


def video_probe(params: dict[str, Any]) -> dict[str, Any]:
    """`{path, max_pixels, max_video_s}` -> the fields of `video.VideoFacts`.

    Raises:
        WorkerError: video_damaged, unsupported_video, no_video_stream, video_encrypted, video_too_large,
            video_too_long.
    """
    with VideoReader(Path(params["path"]), params["max_pixels"]) as reader:
        first = next(reader.frames(), None)
        if first is None:
            most = f"{params['max_pixels'] / 1e6:.0f} MP"
            raise damaged(f"no frame of this video can be decoded: it is damaged, or its frames are larger than {most}")
        facts = _facts(reader, first)
    with VideoReader(Path(params["path"]), params["max_pixels"]) as reader:
        facts |= _lengths(reader, _scan(reader, SCAN_S), facts.pop("header_s"))
    _check_length(facts["duration_s"], params["max_video_s"])
    return facts


def video_times(params: dict[str, Any]) -> dict[str, Any]:
    """`{path, max_pixels}` -> `{times_s}`: the presentation times of all packets, ascending."""
    with VideoReader(Path(params["path"]), params["max_pixels"]) as reader:
        return {"times_s": [round(time_s, DECIMALS) for time_s in _scan(reader, float("inf")).times_s]}


def video_frames(params: dict[str, Any]) -> dict[str, Any]:
    """One step of reading frames.

    Args:
        params: `path`, `max_pixels`, `size_px` (upright width and height that all frames get), `times_s` (ascending),
            `out_dir`, `first_index` (number of the first of `times_s`), `budget_s`, `thumbnail_px` (0 = none), and,
            optional, `whole`: False for small pictures only.

    Returns:
        `frames`: for the first of `times_s`, at least one, what became of each: `{time_s, name, thumbnail}` or
        `{reason}`. The caller asks again for the rest.
    """
    ends_s = time.monotonic() + params["budget_s"]
    results: list[dict[str, Any]] = []
    with VideoReader(Path(params["path"]), params["max_pixels"]) as reader:
        for found in on_screen(reader, params["times_s"]):
            results.append(_keep(found, params, params["first_index"] + len(results)))
            if time.monotonic() >= ends_s:
                break
    return {"frames": results}


TASKS = {"video_probe": video_probe, "video_times": video_times, "video_frames": video_frames}


def on_screen(reader: VideoReader, times_s: list[float]) -> Iterator[Decoded | str]:
    """For each of the ascending times the frame on screen: the last whose own time is not later; else why not.

    Before the first frame it is the first one, behind the end the last one.
    """
    shown: Decoded | None = None
    coming: Decoded | None = None
    frames: Iterator[Decoded] = iter(())
    for number, asked_s in enumerate(times_s):
        wanted_s = asked_s + SAME_FRAME_S / 2  # told times are rounded, and mean their frame
        if number == 0 or (shown and reader.keyframe_between(coming.time_s if coming else shown.time_s, wanted_s)):
            frames = reader.frames(wanted_s)
            shown, coming = None, next(frames, None)
        while coming is not None and (shown is None or coming.time_s <= wanted_s):
            shown, coming = coming, next(frames, None)
        yield judged(shown, coming.after_gap if coming else reader.ends_damaged, wanted_s)


def judged(shown: Decoded | None, gap_follows: bool, wanted_s: float) -> Decoded | str:
    """The frame on screen at a time if it can be trusted, else why not."""
    if shown is None:
        return "frame_damaged: nothing of this video can be decoded"
    if shown.damaged:
        return f"frame_damaged: the frame at {shown.time_s:.3f} s is damaged"
    if gap_follows and wanted_s > shown.time_s + SAME_FRAME_S:
        return f"frame_damaged: what follows the frame at {shown.time_s:.3f} s cannot be decoded"
    return shown


def _keep(found: Decoded | str, params: dict[str, Any], index: int) -> dict[str, Any]:
    if isinstance(found, str):
        return {"reason": found}
    rgb = to_rgb(found.frame, tuple(params["size_px"]), Turn.of(found.frame))
    folder = Path(params["out_dir"])
    name = f"frame-{index:06d}.rgb"
    kept: dict[str, Any] = {"time_s": round(found.time_s, DECIMALS), "name": name}
    if params["thumbnail_px"]:
        small = thumbnail(rgb, params["thumbnail_px"])
        kept["thumbnail"] = {"name": f"thumb-{index:06d}.rgb", "width_px": small.shape[1], "height_px": small.shape[0]}
        write_rgb(folder / f"thumb-{index:06d}.rgb", small)
    if params.get("whole", True):
        write_rgb(folder / name, rgb)
    return kept


def thumbnail(rgb: Rgb, side_px: int) -> Rgb:
    """The picture with its longer side at most `side_px`."""
    height, width = rgb.shape[:2]
    factor = min(1.0, side_px / max(height, width))
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    small: Rgb = cv2.resize(rgb, size, interpolation=cv2.INTER_AREA)
    return small


def write_rgb(path: Path, rgb: Rgb) -> None:
    """Write a raw RGB file that is whole as soon as it has its name."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with pixel_file(part) as out:
        out.write(rgb.data)
    part.replace(path)


def _facts(reader: VideoReader, first: Decoded) -> dict[str, Any]:
    stream, container = reader.stream, reader.video.container
    turn = Turn.of(first.frame)
    width_px, height_px = turn.size(first.frame.width, first.frame.height)
    audio = container.streams.audio
    header_s = [float(stream.duration * reader.time_base)] if stream.duration else []
    header_s += [container.duration / av.time_base] if container.duration else []
    return {
        "width_px": width_px,
        "height_px": height_px,
        "rotation_deg": turn.rotation_deg,
        "start_s": round(reader.start_s, DECIMALS),
        "codec": reader.video.stands_for or stream.codec_context.codec.canonical_name,
        "container": reader.video.stands_for or container.format.name.split(",")[0],
        "audio_codec": codec_name(audio[0]) if audio else None,
        "interlaced": first.frame.interlaced_frame,
        "header_s": header_s[0] if header_s else 0.0,
    }


def codec_name(track: AudioStream) -> str:
    """The codec of a sound track; `unknown` for one that nothing here decodes."""
    context: AudioCodecContext | None = track.codec_context  # PyAV's types forget that there may be none
    return "unknown" if context is None else context.codec.canonical_name


@dataclass(frozen=True, slots=True)
class _Scan:
    """What the packets of the picture track say: `times_s` ascending, the end of the last, whether all were seen."""

    times_s: list[float]
    end_s: float
    whole: bool


def _scan(reader: VideoReader, limit_s: float) -> _Scan:
    """Look through the packets; those that the file says are not to be shown are left out."""
    stops_s = time.monotonic() + limit_s
    ticks: list[int] = []
    untimed = end = 0
    whole = True
    for packet in reader.packets():
        at = packet.dts if reader.times_are_dts else packet.pts
        if at is None:
            untimed += packet.size > 0
        elif not packet.is_discard:
            ticks.append(at)
            end = max(end, at + (packet.duration or 0))
        if time.monotonic() > stops_s:
            whole = False
            break
    if ticks:
        times_s = sorted(map(reader.seconds, ticks))
        return _Scan(times_s, max(reader.seconds(end), times_s[-1]), whole)
    return _Scan([float(i / reader.rate) for i in range(untimed)], float(untimed / reader.rate), whole)


def _lengths(reader: VideoReader, scan: _Scan, header_s: float) -> dict[str, Any]:
    fps = float(reader.rate)
    if not scan.whole:
        return {"duration_s": round(header_s, 3), "frame_count": None, "stated_duration_s": None, "fps": round(fps, 3)}
    count = len(scan.times_s)
    if count > 1 and scan.times_s[-1] > scan.times_s[0]:
        fps = (count - 1) / (scan.times_s[-1] - scan.times_s[0])
    last_s = scan.times_s[-1] if count else 0.0
    end_s = scan.end_s if scan.end_s > last_s else last_s + 1 / fps  # the last frame may be of unknown length
    cut_off = header_s - end_s > max(_CUT_OFF_S, _CUT_OFF_SHARE * header_s)
    return {
        "duration_s": round(end_s, 3),
        "frame_count": count,
        "stated_duration_s": round(header_s, 3) if cut_off else None,
        "fps": round(fps, 3),
    }


def _check_length(duration_s: float, max_video_s: float) -> None:
    if duration_s > max_video_s:
        raise WorkerError(
            "video_too_long",
            f"the video takes {duration_s:.0f} s",
            rule=f"at most {max_video_s:.0f} s",
            next_step="Cut it into parts",
        )
