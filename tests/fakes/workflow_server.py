"""A scripted workflow endpoint on loopback: speaks as XGEN's does, and goes wrong in the ways that the field has seen.

    with workflow_server() as fake:
        fake.play("mixed_unnamed")
        ... WorkflowTarget(fake.url, token) ...

Healthy it answers with `data` events and one `end`, and keeps a log of what it received under each interaction id.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from tests.fakes.loopback import serving_app

TOKEN = "workflow-token"
OPINION = (
    "이 광고는 예금자보호 안내와 해약환급금 안내를 갖추었으나 갱신형 보험료의 인상 가능성을 알리는 문구가 작습니다. "
    * 8
)
STRANGER = "stranger-1-0011223344556677"


@dataclass
class FakeWorkflow:
    """`fault` names what goes wrong; `label`, `findings` and `tools` are what a healthy one has."""

    fault: str = ""
    label: str = "conditional"
    findings: list[dict[str, str]] = field(default_factory=list)
    tools: list[str] = field(default_factory=lambda: ["check_phrases", "check_figures"])
    port: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)
    log: dict[str, list[str]] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def play(self, fault: str = "", **changes: Any) -> None:
        """Another script from now on, and records that begin anew."""
        fresh = FakeWorkflow(fault, **changes)
        for name in ("fault", "label", "findings", "tools", "bodies", "log", "tokens"):
            setattr(self, name, getattr(fresh, name))

    # The rest runs in the server's thread.

    async def execute(self, request: Request) -> Response:
        self.tokens.add(request.headers.get("authorization", ""))
        body = await request.json()
        self.bodies.append(body)
        run_id, asked = str(body["interaction_id"]), str(body["input_data"])
        if self.fault == "refuses":
            return JSONResponse({"detail": "no"}, status_code=503)
        if self.fault == "no_stream":
            return JSONResponse({"status": "success"})
        if self.fault != "no_log":
            key = "default" if self.fault == "shared_conversation" else run_id
            logged = "처음의 다른 광고를 심의하세요" if self.fault == "wrong_input" else asked
            self.log.setdefault(key, []).append(logged)
        if self.fault == "second_turn":
            self.log[run_id].append("그리고 하나 더")
        return StreamingResponse(self._events(run_id), media_type="text/event-stream")

    async def _events(self, run_id: str) -> AsyncIterator[str]:
        for event in self._script(run_id):
            yield f"data: {event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)}\n\n"
        if self.fault == "breaks":
            raise ConnectionResetError
        if self.fault == "stalls":
            await asyncio.Event().wait()

    def _script(self, run_id: str) -> Iterator[dict[str, Any] | str]:
        named = {"interaction_id": run_id} if self.fault in ("mixed_named", "named") else {}
        if self.fault == "garbage":
            yield "no JSON at all"
            yield {"type": "data", "content": {"no": "text"}}
        for tool in self.tools:
            yield {"type": "tool", "tool_name": tool} | named
        if self.fault == "error":
            yield {"type": "error", "detail": "스트리밍 중 오류"}
            return
        for index, piece in enumerate(self._pieces(run_id)):
            yield {"type": "data", "content": piece} | named
            if self.fault in ("mixed_unnamed", "mixed_named"):
                yield {"type": "data", "content": f"남의 글 {index} ", "meta": {"interaction_id": STRANGER}}
        if self.fault not in ("cut", "stalls", "breaks"):
            yield {"type": "end", "message": "Stream finished"} | named

    def _pieces(self, run_id: str) -> list[str]:
        if self.fault == "empty":
            return []
        if self.fault == "short":
            return [self._block(run_id)]
        if self.fault == "label_line":
            return [OPINION, f"\n판정: {self.label}\n"]
        if self.fault == "other_answer":
            return [OPINION, self._block(STRANGER)]
        if self.fault == "two_answers":
            return [OPINION, self._block(run_id), self._block(STRANGER)]
        if self.fault in ("unsigned", "named"):
            return [OPINION, self._block(None)]
        middle = len(OPINION) // 2
        return [OPINION[:middle], OPINION[middle:], self._block(run_id)]

    def _block(self, run_id: str | None) -> str:
        facts = {"label": self.label, "findings": self.findings} | ({} if run_id is None else {"run": run_id})
        return f"\n```json\n{json.dumps(facts, ensure_ascii=False)}\n```\n"

    async def io_logs(self, interaction_id: str) -> Any:
        if self.fault == "log_fails":
            return JSONResponse({"detail": "no"}, status_code=500)
        # A server whose conversations are shared gives out all that anybody asked.
        key = "default" if self.fault == "shared_conversation" else interaction_id
        turns = self.log.get(key, [])
        return {
            "in_out_logs": [{"interaction_id": key, "input_data": {"result": [{"text": text}, None]}} for text in turns]
        }

    async def listed(self) -> Any:
        if self.fault == "tools_odd":
            return ["no object"]
        return {"tools": None if self.fault == "tools_null" else [{"name": name} for name in self.tools]}


@contextmanager
def workflow_server() -> Iterator[FakeWorkflow]:
    fake = FakeWorkflow()
    app = FastAPI()
    app.add_api_route("/api/workflow/execute/based_id/stream", fake.execute, methods=["POST"])
    app.add_api_route("/api/workflow/io_logs", fake.io_logs, methods=["GET"])
    app.add_api_route("/tools", fake.listed, methods=["GET"])
    with serving_app(app) as port:
        fake.port = port
        yield fake
