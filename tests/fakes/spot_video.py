"""The synthetic spot of mission.md: six seconds of an insurance advertisement of which every frame's truth is known.

    spot = write_spot(tmp_path / "spot.mp4")                       # without loss: stamps survive (claude_stamp.py)
    with claude_server(spot.pages) as fake: ...                    # sees each frame by its truth
    spot = write_spot(tmp_path / "spot.mp4", lossy=True)           # ordinary H.264, for engines that really read

The premium is shown from 0.0 to 2.0 s, coins the whole time (they hop every half second, so that twelve frames half a
second apart are all different), a notice of 12 px for half a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from tests.fakes.claude_pages import TruePage, TrueRegion, page_of_prints
from tests.fakes.videos import even_times, write_clip

FPS, FRAMES = 24, 144
DURATION_S = FRAMES / FPS
# One tile of the vision provider.
SIZE_PX = (1280, 720)
PRODUCT, PRODUCT_PX = "든든한 우리집 종합보험", 44
PREMIUM, PREMIUM_PX, PREMIUM_S = "월 보험료 9,900원", 60, (0.0, 2.0)
# Half a second that begins between two times of the grid of 0.5 s, so that exactly one of them sees it.
NOTICE, NOTICE_PX, NOTICE_S = "※ 보장 내용은 가입 시점의 약관에 따라 달라질 수 있습니다", 12, (3.25, 3.75)
COIN_PX = 120
LABELS = ("coin", "headline amount", "disclaimer")
_HOP_S = Fraction(1, 2)


@dataclass(frozen=True)
class Spot:
    """The video, the different pictures in it, and for each frame the name of the picture that it shows."""

    path: Path
    pages: tuple[TruePage, ...]
    shown: tuple[str, ...]

    def page_at(self, time_s: float) -> TruePage:
        """The picture on screen at this time."""
        name = self.shown[min(int(time_s * FPS + 1e-6), FRAMES - 1)]
        return next(page for page in self.pages if page.name == name)


def within(time_s: float | Fraction, span_s: tuple[float, float]) -> bool:
    return span_s[0] <= time_s < span_s[1]


def spot_page(time_s: Fraction, title: str = "spot", *, still: bool = False) -> TruePage:
    """What the spot shows at this time; `still` keeps the coins where they are."""
    prints = [(PRODUCT, 60, 110, PRODUCT_PX)]
    labelled = []
    if within(time_s, PREMIUM_S):
        labelled.append(("headline amount", len(prints)))
        prints.append((PREMIUM, 60, 300, PREMIUM_PX))
    if within(time_s, NOTICE_S):
        labelled.append(("disclaimer", len(prints)))
        prints.append((NOTICE, 60, 680, NOTICE_PX))
    hop = 0 if still else int(time_s / _HOP_S)
    x0, y0 = 760 + hop % 4 * 100, 180 + hop // 4 * 130
    name = f"{title}-{hop}-{len(prints)}" + ("-notice" if within(time_s, NOTICE_S) else "")
    coins = TrueRegion("coin", (x0, y0, x0 + COIN_PX, y0 + COIN_PX))
    return page_of_prints(name, SIZE_PX, prints, [coins], labelled)


def write_spot(path: Path, *, lossy: bool = False, still: bool = False, title: str = "spot") -> Spot:
    """Encode it. `title` tells spots apart whose answers must not be shared: it is part of every picture's stamp."""
    times = even_times(FRAMES, FPS)
    pages = {page.name: page for page in (spot_page(time, title, still=still) for time in times)}
    shown = tuple(spot_page(time, title, still=still).name for time in times)
    drawn = cache(lambda name: pages[name].rgb())
    pictures = [drawn(name) for name in shown]
    if lossy:
        write_clip(path, pictures, times, options={"g": "48", "crf": "20", "preset": "veryfast"})
    else:
        write_clip(
            path, pictures, times, codec="libx264rgb", pix_fmt="rgb24", options={"qp": "0", "preset": "ultrafast"}
        )
    return Spot(path, tuple(pages.values()), shown)


def seen_grid(spot: Spot, label: str, times_s: Sequence[float]) -> list[float]:
    """Which of these times show the label, by the truth."""
    return [time_s for time_s in times_s if any(region.label == label for region in spot.page_at(time_s).regions)]


def wrong_times(finding: dict[str, Any], truth_s: tuple[float, float], step_s: float) -> list[str]:
    """What is wrong with the exposures of a finding of inspect_video that was on screen once, over this span."""
    spans = finding.get("exposures_s", [])
    if finding["state"] != "shown" or len(spans) != 1:
        return [f"{finding['state']} {spans} and not once"]
    earliest_s, first_s, last_s, latest_s = spans[0]
    slack_s = 0.005  # times are told in milliseconds, and how long the last frame stays is the muxer's guess
    claims = {
        "possible before it": earliest_s < truth_s[0] - step_s - slack_s,
        "sure before it": first_s < truth_s[0] - slack_s,
        "begins late": first_s > truth_s[0] + step_s + slack_s,
        "not possible at its beginning": earliest_s > truth_s[0] + slack_s,
        "not possible at its end": latest_s < truth_s[1] - slack_s,
        "ends early": last_s < truth_s[1] - step_s - slack_s,
        "sure behind it": last_s > truth_s[1] + slack_s,
        "possible behind it": latest_s > truth_s[1] + step_s + slack_s,
    }
    return [f"{spans[0]} {claim} (true: {truth_s})" for claim, holds in claims.items() if holds]


def wrong_height(place: dict[str, Any] | None, true_px: float, most_px: float = 1.0) -> list[str]:
    """What is wrong with a place's height: a box or a text of this many pixels."""
    height_px = None if place is None else place["height_px"]
    right = height_px is not None and abs(height_px - true_px) <= most_px
    return [] if right else [f"{height_px} px high and not {true_px:g}"]


def wrong_findings(facts: dict[str, Any], step_s: float, *, box_error_px: int = 2) -> list[str]:
    """What a whole result of inspect_video with `LABELS`, `PREMIUM` and `NOTICE` says that is not so."""
    labels = {each["label"]: each for each in facts["labels"]}
    phrases = {each["phrase"]: each for each in facts["phrases"]}
    if tuple(labels) != LABELS or tuple(phrases) != (PREMIUM, NOTICE):
        return [f"labels {list(labels)}, phrases {list(phrases)}"]
    whole_s = (0.0, DURATION_S)
    found = {
        "coin": wrong_times(labels["coin"], whole_s, step_s)
        + wrong_height(labels["coin"].get("greatest"), COIN_PX, 2 * box_error_px + 1),
        "headline amount": wrong_times(labels["headline amount"], PREMIUM_S, step_s),
        "disclaimer": wrong_times(labels["disclaimer"], NOTICE_S, step_s)
        + wrong_height(labels["disclaimer"].get("smallest_text"), NOTICE_PX),
        "premium": wrong_phrase(phrases[PREMIUM], PREMIUM_S, PREMIUM_PX, step_s),
        "notice": wrong_phrase(phrases[NOTICE], NOTICE_S, NOTICE_PX, step_s),
        "smallest": wrong_height(facts.get("smallest_text"), NOTICE_PX),
    }
    return [f"{name}: {claim}" for name, claims in found.items() for claim in claims]


def wrong_phrase(
    finding: dict[str, Any], truth_s: tuple[float, float], height_px: int, step_s: float, most_px: float = 1.0
) -> list[str]:
    """What is wrong with a phrase."""
    return wrong_times(finding, truth_s, step_s) + wrong_height(finding.get("smallest_text"), height_px, most_px)
