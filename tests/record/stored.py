"""A recorded answer on disk: what was asked, in hashes, and what came back, word for word. Never a key."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from PIL import Image

FOLDER = Path(__file__).parent / "answers"
# Identifiers of one request or account, which say nothing about the answer.
_IDS = re.compile(r"\b(msg|req)_[A-Za-z0-9]{6,}")
_SECRETS = re.compile(r"sk-ant-[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Fingerprint:
    """What decides an answer. A changed prompt or schema makes a recording stale, another picture does as well."""

    model: str
    max_tokens: int
    effort: str
    prompt: str
    schema: str
    picture: str
    width_px: int
    height_px: int


@dataclass(frozen=True)
class Recorded:
    """One answer of the real API. `events` is the body as it came."""

    name: str
    recorded_utc: str
    asked: Fingerprint
    status: int
    content_type: str
    events: str

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.name}.{self.asked.model}.json"
        path.write_text(json.dumps(asdict(self), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        return path


def clean(text: str, secret: str) -> str:
    """Without identifiers; refuses what holds the key.

    Raises:
        ValueError: the text holds a secret.
    """
    if (secret and secret in text) or _SECRETS.search(text):
        raise ValueError("an answer holds a key, nothing was stored")
    return _IDS.sub(r"\1_recorded", text)


def fingerprint(body: dict[str, Any]) -> Fingerprint:
    """Of a request of the engine: one picture and words."""
    blocks = [block for message in body["messages"] for block in message["content"]]
    data = next(block["source"]["data"] for block in blocks if block["type"] == "image")
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    with Image.open(io.BytesIO(base64.b64decode(data))) as image:
        # The pixels and not the file: encoders of different versions write the same picture differently.
        picture, (width, height) = _hash(image.convert("RGB").tobytes()), image.size
    config = body["output_config"]
    return Fingerprint(
        body["model"],
        body["max_tokens"],
        config["effort"],
        _hash(json.dumps([body["system"], texts]).encode("ascii")),
        _hash(json.dumps(config["format"]["schema"]).encode("ascii")),
        picture,
        width,
        height,
    )


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def load(folder: Path = FOLDER) -> Iterator[Recorded]:
    """Every recorded answer, by name."""
    for path in sorted(folder.glob("*.json")):
        if path.name not in ("probes.json", "tokens.json"):
            data = json.loads(path.read_text(encoding="utf-8"))
            yield Recorded(**{**data, "asked": Fingerprint(**data["asked"])})
