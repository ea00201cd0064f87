"""An inspection of a video as of now: what pictures and reports are made of."""

from __future__ import annotations

from dataclasses import dataclass

from sam2_mcp_worker.checks.rule_packs import VideoRules
from sam2_mcp_worker.media.video import VideoFacts
from sam2_mcp_worker.pipelines.frame_looks import VideoLooks
from sam2_mcp_worker.pipelines.video_finding_types import VideoFindings
from sam2_mcp_worker.uploads import StoredFile


@dataclass(frozen=True, slots=True)
class InspectedVideo:
    """An inspection as of now.

    `engine` says for people who read it; `not_looked` why nobody looked for regions, where labels were asked for.
    """

    stored: StoredFile
    facts: VideoFacts
    looks: VideoLooks
    findings: VideoFindings
    rules: VideoRules | None
    engine: str
    not_looked: str = ""
    notes: tuple[str, ...] = ()
