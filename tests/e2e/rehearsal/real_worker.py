"""The rehearsal's stage for the real worker: its own tools on files whose names and texts tell whose answer it is."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont
from tests.e2e.rehearsal.driver import Call, MakeCall
from tests.e2e.rehearsal.stage import Size, Stage
from tests.fakes.documents import document, good_page

# So many different documents and pictures: small enough to make in a second, enough that two calls rarely meet.
FILES = 40
# Pages of a document whose OCR takes longer than a call, so that partial results are in the play.
LONG_PAGES = 24
TOKEN = "rehearsal"


def make_files(folder: Path, rng: random.Random) -> list[str]:
    """PDFs `<tag>.pdf` that say "document <tag>", pictures `<tag>.png` that say the tag; the tags."""
    tags = [f"{rng.randrange(10**8):08d}" for _ in range(FILES)]
    font = ImageFont.load_default(size=40)
    for tag in tags:
        (folder / f"{tag}.pdf").write_bytes(document([good_page(f"document {tag}")]))
        picture = Image.new("RGB", (420, 120), "white")
        ImageDraw.Draw(picture).text((40, 30), tag, font=font, fill="black")
        picture.save(folder / f"{tag}.png")
    scans = []
    for page in range(LONG_PAGES):
        scan = Image.new("RGB", (1240, 1754), "white")
        pen = ImageDraw.Draw(scan)
        for row in range(30):
            pen.text(
                (80, 60 + row * 55), f"page {page + 1} row {row} of the long document 987654", font=font, fill="black"
            )
        scans.append(scan)
    scans[0].save(folder / "long.pdf", save_all=True, append_images=scans[1:], resolution=150)
    return tags


def real_stage(folder: Path, data_dir: Path, seed: int) -> Stage:
    """`sam2-mcp-worker serve` on the files in `folder`."""
    tags = make_files(folder, random.Random(seed))

    def make_calls(size: Size, rng: random.Random) -> MakeCall:
        slow = set(rng.sample(range(size.calls), size.slow + size.hopeless))

        def make_call(rng: random.Random, number: int) -> Call:
            tag = rng.choice(tags)
            if number in slow:
                return Call("inspect_pdf", {"source": "long.pdf"}, _is_part_of_long)
            match rng.randrange(5):
                case 0:
                    return Call("get_status", {}, _is_status)
                case 1 | 2:
                    return Call("read_text", {"source": f"{tag}.png"}, lambda text: _is_of(text, f"{tag}.png", tag))
                case _:
                    return Call("inspect_pdf", {"source": f"{tag}.pdf"}, lambda text: _is_of(text, f"{tag}.pdf", tag))

        return make_call

    return Stage(
        worker_command=lambda port: [sys.executable, "-m", "sam2_mcp_worker", "serve", "--port", str(port)],
        make_calls=make_calls,
        worker_env={
            "SAM2_MCP_DATA_DIR": str(data_dir),
            "SAM2_MCP_ALLOWED_ROOTS": str(folder),
            "SAM2_MCP_TOKEN": TOKEN,
            "SAM2_MCP_LOG_LEVEL": "WARNING",
        },
        bridge_env={"SAM2_MCP_TOKEN": TOKEN},
    )


def _facts(text: str) -> dict[str, Any]:
    try:
        facts = json.loads(text)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _is_status(text: str) -> bool:
    return "queues" in _facts(text)


def _is_of(text: str, name: str, tag: str) -> bool:
    """The file is named, and whatever was read says its tag; a result without lines must say that it is not the end."""
    facts = _facts(text)
    read = [line["text"] for line in facts.get("lines", [])] + [page.get("text", "") for page in facts.get("pages", [])]
    says_tag = all(tag in "".join(part.split()) for part in read)
    return facts.get("file") == name and says_tag and (bool(read) or "cursor" in facts)


def _is_part_of_long(text: str) -> bool:
    facts = _facts(text)
    return facts.get("file") == "long.pdf" and all("987654" in page.get("text", "") for page in facts["pages"])
