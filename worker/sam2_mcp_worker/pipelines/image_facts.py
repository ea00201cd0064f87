"""What the header of an image tells: its size as everybody will see it. What cannot be an image fails here, by name."""

from __future__ import annotations

from dataclasses import dataclass

from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """Size after EXIF rotation, and frames (only the first is read; None when a later one is damaged)."""

    width_px: int
    height_px: int
    frames: int | None


async def describe_image(services: Services, stored: StoredFile) -> ImageFacts:
    """Size and frames, from the header alone.

    Raises:
        WorkerError: unsupported_image, image_damaged, image_too_large.
    """

    async def compute() -> list[int | None]:
        facts = await services.decoders.run(
            "image_size",
            {"path": str(stored.path), "max_pixels": services.settings.max_picture_pixels},
            timeout_s=services.settings.step_timeout_s,
            job=stored.sha256,
        )
        return [facts["width_px"], facts["height_px"], facts["frames"]]

    key = cache_key("image", stored.sha256, services.settings.max_picture_pixels)
    return ImageFacts(*await services.cache.get_or_compute(key, compute))
