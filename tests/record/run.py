"""The recording itself: the engine's own requests through the recording gateway, then the edges of the API."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from tests.record.gateway import recording_gateway
from tests.record.inputs import RecordedInput
from tests.record.probes import SIZES_PX, picture, probes, request
from tests.record.stored import clean

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.claude import build_claude
from sam2_mcp_worker.engines.vision_errors import VisionError
from sam2_mcp_worker.settings import Settings

RECORDING_CAP_USD = 2.0
# No hurry: a recording shows what the model says, not how fast.
PATIENCE_S = 240.0
_EDGE_MODEL = "claude-haiku-5-5"
_VERSION = "2023-06-01"


def recording_settings(url: str, key: str, data_dir: Path, max_tokens: int) -> Settings:
    """The worker's own settings but for the limits of this run, so that what is recorded is what it sends."""
    return Settings(
        data_dir=data_dir,
        anthropic_api_key=key,
        anthropic_base_url=url,
        claude_daily_cap_usd=RECORDING_CAP_USD,
        claude_fast_max_tokens=max_tokens,
        claude_accurate_max_tokens=max_tokens,
    )


async def record_answers(
    chosen: Iterable[RecordedInput], upstream: str, key: str, folder: Path, scratch: Path
) -> tuple[list[Path], list[str]]:
    """Store one answer per input and model; what was written, and what went wrong."""
    failures: list[str] = []
    with recording_gateway(upstream, key) as gateway:
        for item in chosen:
            vision = build_claude(recording_settings(gateway.url, key, scratch, item.max_tokens))
            gateway.name = item.name
            for model in item.models:
                try:
                    await vision.look(item.tile(scratch), item.wanted, model=model, deadline=Deadline.after(PATIENCE_S))
                except VisionError as error:
                    failures.append(f"{item.name}, {model}: {error.public_text}")
            await vision.close()
        # The last answer of each counts: earlier ones were overloaded or broke off.
        kept = {(answer.name, answer.asked.model): answer for answer in gateway.kept}
        return [answer.write(folder) for answer in kept.values()], failures + gateway.failures


def record_edges(upstream: str, key: str, folder: Path, model: str = _EDGE_MODEL) -> list[Path]:
    """Store what the API says to requests at its edges, and how it counts pictures."""
    with httpx.Client(base_url=upstream, timeout=60, headers=_headers(key)) as client:
        said = {name: _outcome(client.post("/v1/messages", json=body), key) for name, body in probes(model)}
        tokens = [{"width_px": w, "height_px": h, **_count(client, model, w, h)} for w, h in SIZES_PX]
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    return [
        _write(folder / "probes.json", {"recorded_utc": when, "model": model, "probes": said}),
        _write(folder / "tokens.json", {"recorded_utc": when, "model": model, "pictures": tokens}),
    ]


def _headers(key: str) -> dict[str, str]:
    return {"x-api-key": key, "anthropic-version": _VERSION}


def _outcome(reply: httpx.Response, key: str) -> dict[str, Any]:
    clean(reply.text, key)
    error = reply.json().get("error", {}) if reply.status_code >= 400 else {}
    return {
        "status": reply.status_code,
        "error": error.get("type", ""),
        "message": clean(error.get("message", ""), key),
    }


def _count(client: httpx.Client, model: str, width: int, height: int) -> dict[str, Any]:
    body = request(model, picture(width, height))
    del body["max_tokens"]
    reply = client.post("/v1/messages/count_tokens", json=body)
    return {"status": reply.status_code, "input_tokens": reply.json().get("input_tokens", 0)}


def _write(path: Path, data: dict[str, Any]) -> Path:
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path
