"""One label over the frames of a video: when, how large, how many at once, and with what text in it."""

from __future__ import annotations

from collections.abc import Sequence

from sam2_mcp_worker.checks.exposure import Exposures
from sam2_mcp_worker.checks.rule_packs import VideoRules
from sam2_mcp_worker.engines.ports import Region
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, VideoLooks
from sam2_mcp_worker.pipelines.look_moments import LookMoments
from sam2_mcp_worker.pipelines.video_absence import why_unsure
from sam2_mcp_worker.pipelines.video_finding_types import LabelFinding, Place
from sam2_mcp_worker.pipelines.video_rules import height_checks, smallest_place, time_checks

_NOBODY_LOOKED = "nobody looked for regions"


def find_labels(
    looks: VideoLooks, moments: LookMoments, labels: Sequence[str], rules: VideoRules | None
) -> tuple[LabelFinding, ...]:
    """One finding for each label, in their order."""
    bearers: dict[str, dict[int, list[Region]]] = {label: {} for label in labels}
    for index, look in enumerate(looks.looks):
        for region in look.regions or ():
            if region.label in bearers:
                bearers[region.label].setdefault(index, []).append(region)
    unsure = [look for look in looks.looks if look.failed or look.partly or look.regions is None]
    unseen = why_unsure(looks, unsure, _NOBODY_LOOKED)
    return tuple(
        _shown(label, regions, looks, moments, rules)
        if regions
        else LabelFinding(
            label, "cannot_tell" if unseen else "not_shown", unseen, exposures=_exposures(looks, moments, {})
        )
        for label, regions in bearers.items()
    )


def _exposures(looks: VideoLooks, moments: LookMoments, regions: dict[int, list[Region]]) -> Exposures:
    return moments.exposures([True if index in regions else _lacks(look) for index, look in enumerate(looks.looks)])


def _lacks(look: FrameLook) -> bool | None:
    return None if look.failed or look.partly or look.regions is None else False


def _shown(
    label: str,
    regions: dict[int, list[Region]],
    looks: VideoLooks,
    moments: LookMoments,
    rules: VideoRules | None,
) -> LabelFinding:
    exposures = _exposures(looks, moments, regions)
    tallest = max((_box_place(looks.looks[i], region) for i, found in regions.items() for region in found), key=_height)
    texts = [
        Place(looks.looks[index].time_s, region.box_xyxy_px, region.text_height_px)
        for index, found in regions.items()
        for region in [min(found, key=lambda region: region.text_height_px or float("inf"))]
        if region.text_height_px
    ]
    smallest = smallest_place(texts, exposures)
    times = [looks.looks[index].time_s for index in regions]
    return LabelFinding(
        label=label,
        state="shown",
        frames=len(regions),
        first_s=times[0],
        last_s=times[-1],
        exposures=exposures,
        greatest=tallest,
        greatest_share=tallest.height_px / looks.height_px,
        smallest_text=smallest,
        smallest_text_share=smallest.height_px / looks.height_px if smallest else None,
        most_at_once=max(len(found) for found in regions.values()),
        # A minimum time is about reading: it is only asked of what holds text.
        checks=(
            (*time_checks(rules, exposures, looks), *height_checks(rules, smallest.height_px, looks.height_px))
            if smallest
            else ()
        ),
    )


def _box_place(look: FrameLook, region: Region) -> Place:
    return Place(look.time_s, region.box_xyxy_px, float(region.box_xyxy_px[3] - region.box_xyxy_px[1]))


def _height(place: Place) -> float:
    return place.height_px
