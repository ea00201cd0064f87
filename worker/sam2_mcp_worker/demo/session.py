"""One session on the demo's station, and the files that go to and come from its worker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from sam2_mcp_worker.errors import WorkerError

CALL_LIMIT_S = 30.0  # the station's own limit for one call

Say = Callable[[str], None]


@dataclass(slots=True)
class DemoResult:
    """What the walk found; `pages` are the rows of the table, `calls_s` the time of every tool call.

    `phrases`, `rules` and `figures` are as the judges tell them.

    `cut_out` tells the engine, the mask and what became of the redaction, or why there was none.
    """

    worker_ready_s: float = 0.0
    session_s: float = 0.0
    tools: list[str] = field(default_factory=list)
    calls_s: list[float] = field(default_factory=list)
    page_count: int = 0
    coverage: dict[str, Any] = field(default_factory=dict)
    pages: list[dict[str, Any]] = field(default_factory=list)
    phrases: list[dict[str, Any]] = field(default_factory=list)
    rules: list[dict[str, Any]] = field(default_factory=list)
    figures: list[dict[str, Any]] = field(default_factory=list)
    label: str = ""
    lines_of_image: int = 0
    idle_mb: int = 0
    peak_mb: int = 0
    cut_out: dict[str, Any] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)


class StationSession:
    """One session on the station, called as the XGEN loader calls it."""

    def __init__(self, client: httpx.Client, session_id: str, result: DemoResult) -> None:
        self._client = client
        self._session_id = session_id
        self.result = result

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """One request through the station; the result object.

        Raises:
            WorkerError: the station reported a failure.
        """
        body = {"session_id": self._session_id, "method": method, "params": params}
        answer = self._client.post("/api/mcp/mcp-request", json=body, timeout=CALL_LIMIT_S + 5).json()
        if not answer.get("success"):
            raise WorkerError("demo_station", f"{method}: {answer.get('error')}")
        data: dict[str, Any] = answer["data"]
        return data

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """One tool call, timed; the facts of its first text block.

        Raises:
            WorkerError: the tool reported an error; its text is in the message.
        """
        started_s = time.monotonic()
        data = self.request("tools/call", {"name": tool, "arguments": arguments})
        self.result.calls_s.append(round(time.monotonic() - started_s, 2))
        text = data["content"][0]["text"]
        if data.get("isError"):
            raise WorkerError("demo_tool", f"{tool}: {text}")
        facts: dict[str, Any] = json.loads(text)
        return facts

    def call_to_the_end(self, tool: str, arguments: dict[str, Any], lists: tuple[str, ...] = ()) -> dict[str, Any]:
        """The last result over the cursor, with the rows of these lists of all results; one told again replaces the
        earlier.

        Raises:
            WorkerError: as `call`.
        """
        kept: dict[str, dict[str, Any]] = {name: {} for name in lists}
        facts = self.call(tool, arguments)
        while True:
            for name in lists:
                kept[name] |= {_key(row): row for row in facts.get(name, ())}
            if not facts.get("cursor"):
                return {**facts, **{name: list(rows.values()) for name, rows in kept.items()}}
            facts = self.call(tool, {**arguments, "cursor": facts["cursor"]})


def _key(row: dict[str, Any]) -> str:
    """What tells a row from others: its number, or what it says and where."""
    return str(row.get("number") or [row.get(name) for name in ("text", "page", "box_xyxy", "sheet", "cell", "line")])


def upload(worker_url: str, path: Path) -> str:
    """Hand a file to the worker; its handle.

    Raises:
        WorkerError: `upload_refused`.
    """
    with path.open("rb") as file, httpx.Client(trust_env=False, timeout=60) as client:
        answer = client.post(f"{worker_url}/files", params={"name": path.name}, content=file)
    if answer.status_code != httpx.codes.CREATED:
        raise WorkerError("upload_refused", f"the worker answered {answer.status_code}: {answer.text[:300]}")
    return str(answer.json()["handle"])


def fetch(worker_url: str, uri: str, path: Path) -> str:
    """Bring an artifact to `path`; returns it as text."""
    handle = uri.removeprefix("artifact://")
    answer = httpx.get(f"{worker_url}/artifacts/{handle}", trust_env=False, timeout=60).raise_for_status()
    path.write_bytes(answer.content)
    return str(path)
