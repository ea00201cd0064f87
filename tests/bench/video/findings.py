"""What it costs to make findings of the looks at an hour of video, in processor seconds.

    python -m tests.bench.video.findings [--looks 7200] [--check] [--json]

Each look has twenty lines. `scenes`: the lines change every 8 s and are read the same each time. `slips`: each reading
has 5 % of its syllables wrong, so that no two are alike. `noise`: no reading has anything to do with another one, as on
picture textures that are no text. Without phrases, and with twenty of them.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tests.bench.claude.command import finish, options

from sam2_mcp_worker.checks.rule_packs import load_rule_pack
from sam2_mcp_worker.demo import leaflet_copy
from sam2_mcp_worker.engines.ports import Region, TextLine
from sam2_mcp_worker.pipelines.frame_looks import FrameLook, Span, VideoLooks
from sam2_mcp_worker.pipelines.video_findings import find_all

LINES, STEP_S, LOOKS_PER_SCENE = 20, 0.5, 16
LINE_SYLLABLES = 28
# Findings are made anew in every call, which lasts 27 s: twice the 2 s that are aimed at, for a slow core.
BOUND_S = 4.0
WRONG_SHARE = {"scenes": 0.0, "slips": 0.05, "noise": 1.0}


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds of `find_all`."""

    looks: str
    texts: int
    without_phrases_s: float
    with_phrases_s: float
    phrases_shown: int


def sentences() -> list[str]:
    """The demo leaflet's Korean sentences, and lines of them as they wrap on screen."""
    texts = [text for text in vars(leaflet_copy).values() if isinstance(text, str)]
    texts += [
        part
        for parts in vars(leaflet_copy).values()
        if isinstance(parts, tuple)
        for part in parts
        if isinstance(part, str)
    ]
    return [text for text in texts if sum("가" <= char <= "힣" for char in text) >= 8]


def misread(chance: random.Random, text: str, share: float) -> str:
    """The text with a share of its syllables read as others."""
    return "".join(
        chr(0xAC00 + chance.randrange(11172)) if "가" <= char <= "힣" and chance.random() < share else char
        for char in text
    )


def made_looks(kind: str, count: int) -> VideoLooks:
    """Looks of a video of `count` samples."""
    chance = random.Random(7)
    lines = [text[at : at + LINE_SYLLABLES] for text in sentences() for at in range(0, len(text), LINE_SYLLABLES)]
    looks: list[FrameLook] = []
    scene: list[str] = []
    for index in range(count):
        if index % LOOKS_PER_SCENE == 0:
            scene = [chance.choice(lines) for _ in range(LINES)]
        read = [misread(chance, text, WRONG_SHARE[kind]) for text in scene]
        boxes = [(100, 40 * row + 10, 100 + 20 * len(text), 40 * row + 40) for row, text in enumerate(read)]
        found = tuple(TextLine(text, box, 24.0, 0.9) for text, box in zip(read, boxes, strict=True))
        looks.append(FrameLook(index * STEP_S, "grid", lines=found, regions=(Region("coin", (0, 0, 90, 90), 0.9),)))
    return VideoLooks(Span(0, count * STEP_S), STEP_S, True, 1920, 1080, tuple(looks))


def measure(kind: str, count: int) -> Cost:
    """One kind of looks."""
    looks, rules = made_looks(kind, count), load_rule_pack("korean_insurance_ads").video
    phrases = sentences()[:20]
    began_s = time.process_time()
    plain = find_all(looks, [], ["coin", "seal"], rules)
    between_s = time.process_time()
    found = find_all(looks, phrases, ["coin", "seal"], rules)
    shown = sum(finding.state == "shown" for finding in found.phrases)
    return Cost(kind, len(plain.texts), between_s - began_s, time.process_time() - between_s, shown)


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = options("findings", "video")
    parser.add_argument("--looks", type=int, default=7200)
    arguments = parser.parse_args(argv)
    costs = [measure(kind, arguments.looks) for kind in WRONG_SHARE]
    head = "| looks | texts | processor s | with 20 phrases | phrases shown |\n|---|---|---|---|---|"
    rows = [
        f"| {cost.looks} | {cost.texts} | {cost.without_phrases_s:.2f} | {cost.with_phrases_s:.2f} "
        f"| {cost.phrases_shown} |"
        for cost in costs
    ]
    slow = [f"scenes: {costs[0].with_phrases_s:.2f} s > {BOUND_S} s"] if costs[0].with_phrases_s > BOUND_S else []
    return finish(arguments, [asdict(cost) for cost in costs], "\n".join([head, *rows]), slow)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
