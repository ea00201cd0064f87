"""What a video is and when its frames come on screen: looked up once per file, then cached."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sam2_mcp_worker.media.video import VideoFacts, list_times, probe_video
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile


@dataclass(frozen=True, slots=True)
class Video:
    """A stored video, its facts, and the rising times of its frames (at least one)."""

    stored: StoredFile
    facts: VideoFacts
    times_s: list[float]


async def describe_video(services: Services, stored: StoredFile) -> Video:
    """Facts and frame times of a video.

    Raises:
        WorkerError: whatever `probe_video` says of a file that is no video, too long, too large or damaged.
    """
    facts = await facts_of(services, stored)
    times_s = await services.cache.get_or_compute(_key("video_times", services, stored), _list(services, stored))
    return Video(stored, facts, times_s or guessed_times(facts))


async def facts_of(services: Services, stored: StoredFile) -> VideoFacts:
    """What a video is, without the times of its frames; raises as `describe_video`."""
    return VideoFacts(**await services.cache.get_or_compute(_key("video", services, stored), _probe(services, stored)))


def _key(name: str, services: Services, stored: StoredFile) -> str:
    return cache_key(name, stored.sha256, services.settings.max_video_s)


def _probe(services: Services, stored: StoredFile) -> Any:
    async def compute() -> dict[str, Any]:
        settings = services.settings
        facts = await probe_video(
            services.decoders,
            stored.path,
            max_video_s=settings.max_video_s,
            timeout_s=settings.step_timeout_s,
            job=stored.sha256,
        )
        return asdict(facts)

    return compute


def _list(services: Services, stored: StoredFile) -> Any:
    async def compute() -> list[float]:
        times_s = await list_times(
            services.decoders, stored.path, timeout_s=services.settings.step_timeout_s, job=stored.sha256
        )
        return sorted(set(times_s))

    return compute


def guessed_times(facts: VideoFacts) -> list[float]:
    """Where to look for frames in containers that give them no time; true times come with the frames."""
    count = max(1, round(facts.duration_s * facts.fps))
    return [index * facts.duration_s / count for index in range(count)]
