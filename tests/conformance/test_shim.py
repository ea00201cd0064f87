"""The shim with small programs in the place of the bridge."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from tests.conformance.shim import build_app

MODERN = {"MCP-Protocol-Version": "2026-07-28"}
LEGACY = {"MCP-Protocol-Version": "2025-11-25"}

# Reads JSON lines; `say` writes one line. What a test adds runs for each message.
PREAMBLE = """
import json, os, sys
def say(message):
    text = message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0", **message})
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()
for line in sys.stdin:
    m = json.loads(line)
"""


@asynccontextmanager
async def shim(*lines: str) -> AsyncIterator[httpx.AsyncClient]:
    program = PREAMBLE + "".join(f"    {line}\n" for line in lines)
    app = build_app([sys.executable, "-u", "-c", program])
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://shim") as client,
    ):
        yield client


def request(method: str = "tools/call", id: int = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def messages(response: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]


async def breaches(client: httpx.AsyncClient) -> list[str]:
    return (await client.get("/breaches")).json()


async def test_notifications_travel_before_the_answer() -> None:
    async with shim('say({"method": "n"}); say({"id": m["id"], "result": {}})') as client:
        found = messages(await client.post("/mcp", json=request(), headers=MODERN))
        assert [message.get("method") for message in found] == ["n", None]
        assert await breaches(client) == []


async def test_progress_goes_to_the_request_with_its_token_though_another_came_later() -> None:
    """The first request is answered only after the second, so both are under way when progress comes."""
    program = (
        'if m["id"] == 2:',
        '    say({"method": "p", "params": {"progressToken": "one"}})',
        '    say({"id": 2, "result": {}}); say({"id": 1, "result": {}})',
    )
    async with shim(*program) as client:
        first = request(id=1, _meta={"progressToken": "one"})
        one, two = await asyncio.gather(
            *(client.post("/mcp", json=each, headers=MODERN) for each in (first, request(id=2)))
        )
        assert [message.get("method") for message in messages(one)] == ["p", None]
        assert len(messages(two)) == 1


@pytest.mark.parametrize(
    "line",
    [
        'say({"id": 77, "result": {}})',
        'say("stray words")',
        'say("")',
        "sys.stdout.buffer.write(bytes([0x22, 0xc3, 0xa9, 0x22, 10])); sys.stdout.flush()",
        'say("{\\"jsonrpc\\": \\"2.0\\", \\"id\\": 1, \\"result\\": NaN}")',
    ],
)
async def test_whatever_nothing_waits_for_is_a_breach(line: str) -> None:
    async with shim(f'{line}; say({{"id": m["id"], "result": {{}}}})') as client:
        await client.post("/mcp", json=request(), headers=MODERN)
        assert len(await breaches(client)) == 1


async def test_a_bridge_that_ends_is_a_breach_and_its_requests_are_answered() -> None:
    async with shim("sys.exit()") as client:
        for _ in range(2):  # while it runs, and after it
            response = await client.post("/mcp", json=request(), headers=MODERN)
            assert response.json()["error"]["message"] == "the bridge ended"
        assert len(await breaches(client)) == 2


async def test_each_handshake_gets_a_session_with_a_bridge_of_its_own() -> None:
    async with shim('say({"id": m["id"], "result": {"pid": os.getpid()}})') as client:
        first, second = [await client.post("/mcp", json=request("initialize")) for _ in range(2)]
        sessions = [response.headers["mcp-session-id"] for response in (first, second)]
        assert messages(first)[0]["result"] != messages(second)[0]["result"]
        again = await client.post("/mcp", json=request(), headers=LEGACY | {"Mcp-Session-Id": sessions[0]})
        assert messages(again)[0]["result"] == messages(first)[0]["result"]
        assert (await client.delete("/mcp", headers={"Mcp-Session-Id": sessions[0]})).status_code == 200
        gone = await client.post("/mcp", json=request(), headers=LEGACY | {"Mcp-Session-Id": sessions[0]})
        assert gone.status_code == 404


async def test_modern_requests_share_a_bridge_while_they_declare_the_same() -> None:
    async with shim('say({"id": m["id"], "result": {"pid": os.getpid()}})') as client:
        meta: list[dict[str, Any]] = [{}, {}, {"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}}]
        posts = [await client.post("/mcp", json=request(_meta=each), headers=MODERN) for each in meta]
        one, same, other = [messages(post)[0]["result"] for post in posts]
        assert one == same != other


async def test_modern_errors_travel_with_their_status() -> None:
    async with shim('say({"id": m["id"], "error": {"code": -32601, "message": "no"}})') as client:
        assert (await client.post("/mcp", json=request(), headers=MODERN)).status_code == 404


async def test_answers_and_notifications_of_the_host_are_passed_on_without_an_answer() -> None:
    async with shim(
        'say({"id": m["id"], "result": seen}) if m.get("method") == "tools/call" else (seen := m)'
    ) as client:
        answer = {"jsonrpc": "2.0", "id": 5, "result": {"roots": []}}
        assert (await client.post("/mcp", json=answer, headers=MODERN)).status_code == 202
        assert messages(await client.post("/mcp", json=request(), headers=MODERN))[0]["result"] == answer
