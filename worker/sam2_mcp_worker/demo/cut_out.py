"""The demo's last step: an object of the leaflet's cover is cut out to its mask, and the mask is redacted.

Says which engine did it. Without an engine it says so and the box around the object is redacted instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.demo.session import Say, StationSession, fetch, upload
from sam2_mcp_worker.errors import WorkerError


@dataclass(frozen=True, slots=True)
class CutOut:
    """A picture, a box around one object on it, in pixels, and what that object is."""

    picture: Path
    box_xyxy_px: tuple[int, int, int, int]
    name: str


def box_px(box_pt: tuple[float, float, float, float], px_per_pt: float) -> tuple[int, int, int, int]:
    """A box of the layout in pixels of its picture, rounded out."""
    x0, y0, x1, y1 = (value * px_per_pt for value in box_pt)
    return math.floor(x0), math.floor(y0), math.ceil(x1), math.ceil(y1)


def cut_and_redact(session: StationSession, worker_url: str, cut: CutOut, out_dir: Path, say: Say) -> None:
    """Call segment_image and redact_media; what they gave goes into the session's result and into `out_dir`."""
    result = session.result
    source = upload(worker_url, cut.picture)
    try:
        facts = session.call_to_the_end(
            "segment_image", {"source": source, "boxes": [list(cut.box_xyxy_px)]}, ("objects",)
        )
    except WorkerError as error:
        result.cut_out = {"not_available": error.what}
        say(f"no object was cut out, its box is redacted instead: {error.what}")
        _redact(session, worker_url, source, {"box_xyxy_px": list(cut.box_xyxy_px)}, out_dir, say)
        return
    found = facts["objects"][0]
    result.cut_out = {"engine": facts["engine"], "object": cut.name, "status": found["status"]}
    result.files += [
        fetch(worker_url, facts[name], out_dir / file)
        for name, file in (("overlay", "cover-objects.jpg"), ("coco", "cover-objects.json"))
        if facts.get(name)
    ]
    if found.get("blank") or found["status"] != "done":
        say(f"segment_image: {facts['engine']} found no {cut.name}: {found.get('reason', 'the mask is blank')}")
        return
    result.cut_out |= {name: found[name] for name in ("box_xyxy_px", "area_pct", "predicted_iou", "stability")}
    result.files.append(fetch(worker_url, found["mask"], out_dir / "cover-mask.png"))
    say(
        f"segment_image: {cut.name} cut out by {facts['engine']}, {found['area_pct']} % of the cover, "
        f"predicted IoU {found['predicted_iou']}, {result.calls_s[-1]} s"
    )
    _redact(session, worker_url, source, {"handle": found["mask"].removeprefix("artifact://")}, out_dir, say)


def _redact(
    session: StationSession, worker_url: str, source: str, region: dict[str, Any], out_dir: Path, say: Say
) -> None:
    result = session.result
    try:
        facts = session.call_to_the_end("redact_media", {"source": source, "regions": [region]})
    except WorkerError as error:
        result.cut_out["redaction"] = error.what
        say(f"nothing was redacted: {error.what}")
        return
    result.cut_out["redaction"] = facts["status"]
    if facts.get("redacted"):
        result.files.append(fetch(worker_url, facts["redacted"], out_dir / "cover-redacted.png"))
    verified = "; ".join(facts.get("verified") or ["nothing"])
    say(f"redact_media: {facts['status']}, verified: {verified}, {result.calls_s[-1]} s")
