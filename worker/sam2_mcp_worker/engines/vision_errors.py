"""Why a vision provider gave nothing: pipelines decide by kind, and agents see it as coverage."""

from __future__ import annotations

from typing import ClassVar

from sam2_mcp_worker.engines.provider_errors import WHOLE_PROVIDER, Kind, ProviderError

# Only this picture is concerned, and asking again does not help: the local engine reads it instead.
THIS_PICTURE: frozenset[Kind] = frozenset({"refused", "too_large", "no_answer"})


class VisionError(ProviderError):
    """Its code is `vision_` plus the kind."""

    family: ClassVar[str] = "vision"

    @property
    def local_reads_on(self) -> bool:
        """Whether the local engine should read this tile now, rather than the provider later."""
        return self.kind in WHOLE_PROVIDER or self.kind in THIS_PICTURE
