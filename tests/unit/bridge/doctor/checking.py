"""Runs the doctor, and servers that pass all its stages or refuse."""

import hashlib
import json
import struct
import zlib
from typing import Any

from tests.fakes import upstream as fakes

from sam2_mcp_bridge.doctor import check
from sam2_mcp_bridge.doctor.check import Finding
from sam2_mcp_bridge.doctor.stages import STAGES

TOOLS = [
    {"name": "get_status", "inputSchema": {"type": "object"}},
    {"name": "read_text", "inputSchema": {"type": "object", "properties": {"source": {"type": "string"}}}},
]
STATUS = {"version": "1.2.3", "ready": True}


def checked(url: str, *flags: str) -> dict[str, Finding]:
    findings = check.run(["--url", url, *flags])
    assert [finding.stage for finding in findings] == list(STAGES)
    return {finding.stage: finding for finding in findings}


def failed(url: str, stage: str, *flags: str) -> Finding:
    """The finding of this stage, which must be the one that failed; its mend is said and nothing later was tried."""
    findings = checked(url, *flags)
    states = {name: finding.state for name, finding in findings.items()}
    place = list(STAGES).index(stage)
    assert findings[stage].state == "failed", findings
    assert all(states[name] in ("ok", "skipped") for name in list(STAGES)[:place])
    assert all(states[name] == "not_reached" for name in list(STAGES)[place + 1 :])
    assert findings[stage].mend and findings[stage].detail
    return findings[stage]


def tool_json(value: Any, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(value)}], **more}


def dimensions(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n") and png.endswith(b"IEND" + struct.pack(">I", zlib.crc32(b"IEND")))
    return struct.unpack(">II", png[16:24])  # type: ignore[return-value]


async def take_file(call: fakes.Call) -> None:
    dimensions(call.body)
    about = {"handle": "file_1", "size_bytes": len(call.body), "sha256": hashlib.sha256(call.body).hexdigest()}
    await fakes.raw(201, fakes.JSON, json.dumps(about).encode())(call)


async def work(call: fakes.Call) -> None:
    params = call.message["params"]
    if params["name"] == "get_status":
        await fakes.result({"content": [], "structuredContent": STATUS})(call)
    else:
        assert params["arguments"] == {"source": "file_1"}
        await fakes.result(tool_json({"width_px": 160, "height_px": 48}))(call)


def refusal(message: str, code: int = -32601) -> fakes.Behaviour:
    async def behave(call: fakes.Call) -> None:
        answer = {"jsonrpc": "2.0", "id": call.message["id"], "error": {"code": code, "message": message}}
        await fakes.raw(404 if code == -32601 else 400, fakes.JSON, json.dumps(answer).encode())(call)

    return behave


DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "9"}},
}
