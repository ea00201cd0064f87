"""The doctor against servers that are ill in one way each, from http to the picture."""

import asyncio
import hashlib
import json
from typing import Any

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.upstream import FakeUpstream
from tests.unit.bridge.doctor.checking import (
    TOOLS,
    checked,
    failed,
    refusal,
    tool_json,
    work,
)

from sam2_mcp_bridge.doctor import check
from sam2_mcp_bridge.doctor import stages as check_stages


@pytest.mark.parametrize(
    ("behaviour", "code", "mend"),
    [
        (fakes.raw(401, "text/plain", b"who?"), "[unauthorized]", "SAM2_MCP_TOKEN_FILE"),
        (fakes.raw(403, "text/plain", b"no"), "[forbidden]", "SAM2_MCP_ALLOWED_ORIGINS"),
        (fakes.raw(404, "text/html", b"<h1>nothing</h1>"), "[not_found]", "the worker's path is /mcp"),
        (fakes.raw(421, "text/plain", b"Invalid Host header"), "[host_not_allowed]", "SAM2_MCP_ALLOWED_HOSTS"),
        (fakes.raw(500, "text/plain", b"oops"), "[worker_error]", "log"),
        (fakes.raw(503, "text/plain", b"later"), "[busy]", "gateway"),
        (
            fakes.raw(301, "", b"", "location: https://elsewhere.test/mcp"),
            "(HTTP 301: to https://elsewhere.test/mcp)",
            "final",
        ),
        (fakes.raw(200, "text/html", b"<h1>Welcome</h1>"), "[not_mcp]", "another program"),
        (fakes.raw(201, fakes.JSON, b"{}"), "holds no JSON-RPC response", "streamable HTTP endpoint"),
        (fakes.reset(), "[connection_broken]", "must begin with https://"),
    ],
)
def test_an_endpoint_that_does_not_answer_in_json_rpc_fails_at_http(
    fake: FakeUpstream, behaviour: fakes.Behaviour, code: str, mend: str
) -> None:
    fake.on["initialize"] = behaviour
    http = failed(fake.url, "http")
    assert code in http.detail and mend in str(http.mend)


async def dripping(call: fakes.Call) -> None:
    await call.send(fakes.head(200, fakes.SSE))
    while not call.writer.is_closing():
        await call.send(b": ping\r\n\r\n")
        await fakes.asyncio.sleep(0.02)


@pytest.mark.parametrize("behaviour", [fakes.hang(), fakes.hang(with_head=False), dripping])
def test_a_server_that_never_answers_costs_its_time_only(
    fake: FakeUpstream, behaviour: fakes.Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(check_stages.STAGES, "http", 0.3)
    fake.on["initialize"] = behaviour
    assert failed(fake.url, "http").detail.startswith("[timeout]")


def test_all_stages_together_are_bounded_too(fake: FakeUpstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "LIMIT_S", 0.5)
    fake.on["tools/list"] = fakes.hang()
    assert failed(fake.url, "tools").detail.startswith("[timeout]")


@pytest.mark.parametrize(
    ("initialize", "discover", "says"),
    [
        (refusal("go away", -32600), refusal("unknown method"), "initialize: go away; server/discover: unknown method"),
        (refusal("go away", -32600), fakes.raw(404, "text/plain", b""), "server/discover: [not_found]"),
        (refusal("go away", -32600), refusal("bad version", -32022), "server/discover: bad version"),
        (
            fakes.initialize(version="2026-07-28"),
            fakes.result({"supportedVersions": ["2031-01-01"]}),
            "server/discover: an answer without a revision that the bridge has",
        ),
    ],
)
def test_a_server_of_no_revision_that_the_bridge_has_fails_at_eras(
    fake: FakeUpstream, initialize: fakes.Behaviour, discover: fakes.Behaviour, says: str
) -> None:
    fake.on |= {"initialize": initialize, "server/discover": discover}
    assert says in failed(fake.url, "eras").detail


def test_a_server_that_refuses_the_end_of_the_handshake_fails_there(fake: FakeUpstream) -> None:
    fake.on["notifications/initialized"] = fakes.raw(400, "text/plain", b"")
    assert "HTTP 400 to notifications/initialized" in failed(fake.url, "initialize").detail


def test_a_server_that_asks_before_it_answers_gets_an_answer_as_from_the_bridge(fake: FakeUpstream) -> None:
    replied = asyncio.Event()

    async def asks(call: fakes.Call) -> None:
        await call.send(fakes.head(200, fakes.SSE) + fakes.event({"jsonrpc": "2.0", "id": 9, "method": "ping"}))
        await replied.wait()
        tools = {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
        await call.send(fakes.event(fakes.response(call, tools)))

    async def hears(call: fakes.Call) -> None:
        replied.set()
        await fakes.raw(202, "", b"")(call)

    fake.on |= {"tools/list": asks, "": hears}
    assert checked(fake.url)["tools"].state == "ok"


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        (fakes.result({}), "tools/list has no list of tools"),
        (fakes.result({"tools": [TOOLS[0], 5]}), "tool 2 has no name"),
        (fakes.result({"tools": [{"name": ""}]}), "tool 1 has no name"),
        (fakes.result({"tools": [TOOLS[0]], "nextCursor": "x"}), "the tool get_status is there twice"),
        (
            fakes.result({"tools": [{"name": "a\x1b[31m\nb"}]}),
            "the inputSchema of the tool a [31m b is not of type object",
        ),
        (fakes.result({"tools": [], "nextCursor": "x"}), "more than 50 pages"),
        (refusal("not today", -32603), "tools/list was refused: not today"),
    ],
)
def test_a_list_of_tools_that_hosts_cannot_use_fails_at_tools(
    fake: FakeUpstream, tools: fakes.Behaviour, says: str
) -> None:
    fake.on["tools/list"] = tools
    assert says in failed(fake.url, "tools").detail


def test_a_session_that_the_server_forgets_fails_where_it_shows(fake: FakeUpstream) -> None:
    fake.on["initialize"] = fakes.initialize("s1")
    fake.on["tools/list"] = fakes.stateful(["s2"], fakes.result({"tools": []}))
    tools = failed(fake.url, "tools")
    assert "the server lost the session ([session_lost]" in tools.detail and "log" in str(tools.mend)


def test_a_worker_that_is_loading_is_waited_for(fake: FakeUpstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_stages, "READY_PAUSE_S", 0.01)
    loading = fakes.result(tool_json({"ready": False}))
    fake.on["tools/call"] = fakes.in_turn(loading, loading, work)
    assert checked(fake.url)["status"].detail == "version 1.2.3, ready"


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({"ready": False, "not_ready_because": ["no disk", "no language"]}, "not ready: no disk, no language"),
        ({"ready": False}, "not ready: it does not say why"),
    ],
)
def test_a_worker_that_stays_unready_fails_at_status(
    fake: FakeUpstream, answer: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(check_stages.STAGES, "status", 0.3)
    monkeypatch.setattr(check_stages, "READY_PAUSE_S", 0.1)
    fake.on["tools/call"] = fakes.result(tool_json(answer))
    status = failed(fake.url, "status")
    assert says in status.detail and "sam2-mcp-worker doctor" in str(status.mend)


def test_a_failing_status_call_is_told_in_the_servers_words(fake: FakeUpstream) -> None:
    fake.on["tools/call"] = fakes.result({"content": [{"type": "text", "text": "engine gone"}], "isError": True})
    assert "get_status failed: engine gone" in failed(fake.url, "status").detail


@pytest.mark.parametrize(
    "content", [[], "no list", [{"type": "text", "text": "fine"}], [5], [{"text": "[1]"}], [{"text": "[" * 10**5}]]
)
def test_a_status_of_another_form_is_an_answer(fake: FakeUpstream, content: Any) -> None:
    fake.on["tools/list"] = fakes.result({"tools": TOOLS[:1]})
    fake.on["tools/call"] = fakes.result({"content": content})
    assert checked(fake.url)["status"].detail == "answered"


def stored(**about: Any) -> fakes.Behaviour:
    async def behave(call: fakes.Call) -> None:
        facts = {"handle": "file_1", "size_bytes": len(call.body)} | about
        await fakes.raw(201, fakes.JSON, json.dumps(facts).encode())(call)

    return behave


async def altering(call: fakes.Call) -> None:
    """What a body that was changed on the way looks like from here."""
    changed = call.body.replace(b"IDAT", b"IDaT")
    await stored(sha256=hashlib.sha256(changed).hexdigest())(call)


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (altering, "other bytes arrived"),
        (stored(size_bytes=3), "3 other bytes arrived"),
        (stored(handle=None), "gave no handle"),
        (fakes.raw(201, fakes.JSON, b"not json"), "gave no handle"),
        (fakes.raw(413, "text/plain", b""), "[request_too_large]"),
        (fakes.raw(400, fakes.JSON, b'{"error":{"code":-32600,"message":"no files"}}'), "refused: no files"),
    ],
)
def test_a_picture_that_does_not_arrive_whole_fails_at_image(
    fake: FakeUpstream, files: fakes.Behaviour, says: str
) -> None:
    fake.on["POST /files"] = files
    assert says in failed(fake.url, "image").detail


def test_a_picture_that_was_read_in_another_size_fails_at_image(fake: FakeUpstream) -> None:
    fake.on["POST /files"] = stored()  # a server that tells no hash
    fake.on["tools/list"] = fakes.result({"tools": TOOLS[1:]})
    assert checked(fake.url)["image"].state == "ok"
    fake.on["tools/call"] = fakes.result(tool_json({"width_px": 1, "height_px": 2}))
    assert "160 x 48 px here and 1 x 2 px there" in failed(fake.url, "image").detail
