"""Contact with servers of either era: who is asked first, what falls back, and what is met anew."""

import json
import subprocess
import sys
import time
from typing import Any

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.sdk_server import sdk_server
from tests.fakes.upstream import FakeUpstream

from sam2_mcp_bridge.actions import MODERN_VERSION, Host, Refusal, Result
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.transport.transport import Exchange
from sam2_mcp_bridge.upstream.upstream import HEADER_MISMATCH, MAX_LIST_PAGES, Upstream

LEGACY_HOST = Host("2025-06-18", {"roots": {}}, {"name": "old", "version": "1"})
MODERN_HOST = Host(MODERN_VERSION, {"elicitation": {}}, {"name": "new", "version": "1"})
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": [MODERN_VERSION],
    "capabilities": {"tools": {}},
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern"}},
}
NO_METHOD = {"code": -32601, "message": "Method not found"}


def lasting(seconds: float = 20.0) -> Exchange:
    return Exchange(time.monotonic() + seconds)


def error(status: int, **error_object: Any) -> fakes.Behaviour:
    body = {"jsonrpc": "2.0", "id": None, "error": {"message": "no", **error_object}}
    return fakes.raw(status, fakes.JSON, json.dumps(body).encode())


def make_modern(fake: FakeUpstream) -> None:
    fake.on["initialize"] = error(404, **NO_METHOD)
    fake.on["server/discover"] = fakes.result(DISCOVERED, sse=False)


def methods(fake: FakeUpstream) -> list[str]:
    return [call.rpc_method for call in fake.calls]


def code_of(upstream: Upstream, host: Host | None = None) -> str:
    with pytest.raises(Failure) as caught:
        upstream.connect(host)
    return caught.value.code


# Detection


@pytest.mark.parametrize("host", [None, LEGACY_HOST, MODERN_HOST])
@pytest.mark.parametrize("era", ["legacy", "modern", "dual"])
@pytest.mark.parametrize("stateless", [True, False])
def test_every_host_reaches_every_server(era: str, stateless: bool, host: Host | None) -> None:
    with sdk_server(era, stateless=stateless) as server:
        upstream = Upstream(Config(url=server.url))
        told = upstream.connect(host)
        assert upstream.server is told
        modern = era == "modern" or (era == "dual" and host is MODERN_HOST)
        assert told.modern == modern
        assert told.info["name"] == "everything" and "tools" in told.capabilities
        for name, arguments, text in (("인사", {"이름": "철수"}, "안녕 철수"), ("test_simple_text", {}, "This is a")):
            answer = upstream.request(lasting(), "tools/call", {"name": name, "arguments": arguments})
            assert isinstance(answer, Result)
            assert answer.value["content"][0]["text"].startswith(text)
        listed = upstream.request(lasting(), "tools/list", None)
        assert isinstance(listed, Result) and ("ttlMs" in listed.value) == modern
        upstream.close()


def test_the_hosts_era_is_tried_first_and_alone_where_it_works() -> None:
    with FakeUpstream() as fake:
        fake.on["server/discover"] = fakes.result(DISCOVERED)
        assert not Upstream(Config(url=fake.url)).connect(LEGACY_HOST).modern
        assert Upstream(Config(url=fake.url)).connect(MODERN_HOST).modern
        assert methods(fake) == ["initialize", "notifications/initialized", "server/discover"]
        (handshake,) = fake.received("initialize")
        assert handshake.message["params"] == {
            "protocolVersion": "2025-06-18",
            "capabilities": {"roots": {}},
            "clientInfo": {"name": "old", "version": "1"},
        }
        (probe,) = fake.received("server/discover")
        assert probe.headers["mcp-method"] == "server/discover"
        assert probe.headers["mcp-protocol-version"] == MODERN_VERSION
        meta = probe.message["params"]["_meta"]
        assert meta["io.modelcontextprotocol/clientInfo"] == {"name": "new", "version": "1"}


REFUSALS = {
    "no such method": error(404, **NO_METHOD),
    "error in a 200": error(200, **NO_METHOD),
    "plain 400": fakes.raw(400, "text/plain", b"Missing session ID"),
    "plain 405": fakes.raw(405, "", b""),
    "version": error(400, code=-32022, data={"supported": ["2025-11-25"]}),
    "html": fakes.raw(200, "text/html", b"<html>"),
    "202": fakes.raw(202, "", b""),
    "500": fakes.raw(500, "text/plain", b"Internal Server Error"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_whatever_refuses_one_era_is_asked_in_the_other(case: str) -> None:
    with FakeUpstream() as fake:
        fake.on["server/discover"] = REFUSALS[case]
        assert Upstream(Config(url=fake.url)).connect(MODERN_HOST).version == "2025-11-25"
        make_modern(fake)
        fake.on["initialize"] = REFUSALS[case]
        assert Upstream(Config(url=fake.url)).connect(LEGACY_HOST).modern


def test_the_handshake_names_its_method_for_servers_of_the_newer_era_that_get_it() -> None:
    with FakeUpstream() as fake:
        make_modern(fake)
        assert Upstream(Config(url=fake.url)).connect(LEGACY_HOST).modern
        assert [call.headers["mcp-method"] for call in fake.calls] == ["initialize", "server/discover"]


def test_a_discovery_or_a_handshake_without_a_version_in_common_is_a_refusal() -> None:
    with FakeUpstream() as fake:
        fake.on["server/discover"] = fakes.result(DISCOVERED | {"supportedVersions": ["2025-11-25"]})
        assert not Upstream(Config(url=fake.url)).connect(MODERN_HOST).modern
        fake.on["initialize"] = fakes.initialize(version=MODERN_VERSION)
        assert code_of(Upstream(Config(url=fake.url)), LEGACY_HOST) == "handshake_refused"
        fake.on["server/discover"] = fakes.result(DISCOVERED)
        assert Upstream(Config(url=fake.url)).connect(LEGACY_HOST).modern


@pytest.mark.parametrize("status", [200, 400])
def test_a_server_that_refuses_our_version_and_lists_it_is_asked_again_before_the_other_era(status: int) -> None:
    with FakeUpstream() as fake:
        refusal = error(status, code=-32022, data={"supported": [MODERN_VERSION]})
        fake.on["server/discover"] = fakes.in_turn(refusal, fakes.result(DISCOVERED))
        assert Upstream(Config(url=fake.url)).connect(MODERN_HOST).modern
        assert methods(fake) == ["server/discover", "server/discover"]


@pytest.mark.parametrize("supported", [5, True, MODERN_VERSION, {}])
def test_a_list_of_versions_that_is_none_leaves_the_other_era(supported: Any) -> None:
    with FakeUpstream() as fake:
        fake.on["server/discover"] = error(400, code=-32022, data={"supported": supported})
        assert not Upstream(Config(url=fake.url)).connect(MODERN_HOST).modern


@pytest.mark.parametrize(
    ("status", "code"), [(401, "unauthorized"), (403, "forbidden"), (421, "host_not_allowed"), (503, "busy")]
)
def test_a_closed_door_is_no_question_of_the_era(status: int, code: str) -> None:
    with FakeUpstream() as fake:
        fake.on["initialize"] = fake.on["server/discover"] = fakes.raw(status, "text/plain", b"no")
        assert code_of(Upstream(Config(url=fake.url)), LEGACY_HOST) == code
        assert code_of(Upstream(Config(url=fake.url)), MODERN_HOST) == code
        assert methods(fake) == ["initialize", "server/discover"]


def test_where_both_eras_are_refused_the_hosts_is_named_and_an_outage_as_what_it_is() -> None:
    with FakeUpstream() as fake:
        upstream = Upstream(Config(url=fake.url))
        fake.on["initialize"] = error(400, code=-32000, message="not in this era")
        with pytest.raises(Failure, match="not in this era"):
            upstream.connect(LEGACY_HOST)
        fake.on["server/discover"] = error(400, code=-32022)
        assert code_of(upstream, MODERN_HOST) == "handshake_refused"
        fake.on["server/discover"] = fakes.raw(400, "text/plain", b"Missing session ID")
        assert code_of(upstream, MODERN_HOST) == "session_lost"
        fake.on["server/discover"] = fakes.raw(503, "", b"")
        assert code_of(upstream, LEGACY_HOST) == "busy"


def test_another_host_ends_the_session_of_the_former_one() -> None:
    with FakeUpstream() as fake:
        fake.on["initialize"] = fakes.initialize("s")
        upstream = Upstream(Config(url=fake.url))
        for host in (None, None, LEGACY_HOST, LEGACY_HOST):
            upstream.connect(host)
        assert [call.message["params"]["clientInfo"]["name"] for call in fake.received("initialize")] == [
            "sam2-mcp-bridge",
            "old",
        ]
        assert len(fake.received("DELETE")) == 1


def test_what_only_modern_servers_and_subscribers_need_is_not_loaded_for_others() -> None:
    script = """
import sys
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.upstream.upstream import Upstream
Upstream(Config(url=sys.argv[1])).connect()
print(sorted({"modern", "param_headers", "listen", "upstream"} & {name.partition(".")[2] for name in sys.modules}))
"""
    with FakeUpstream() as fake:
        run = subprocess.run([sys.executable, "-c", script, fake.url], capture_output=True, text=True, encoding="utf-8")
        assert (run.stdout.strip(), run.stderr) == ("['upstream']", "")


# A server that has become another one


def test_a_server_that_was_replaced_by_a_modern_one_is_met_again_and_the_call_goes_on() -> None:
    with FakeUpstream() as fake:
        upstream = Upstream(Config(url=fake.url))
        upstream.connect(LEGACY_HOST)
        make_modern(fake)
        missing = error(400, code=-32602, message="missing io.modelcontextprotocol/protocolVersion in _meta")
        fake.on["tools/call"] = fakes.in_turn(missing, fakes.echo)
        answer = upstream.request(lasting(), "tools/call", {"name": "x"})
        assert isinstance(answer, Result) and upstream.server is not None and upstream.server.modern
        _, second = fake.received("tools/call")
        assert second.headers["mcp-name"] == "x" and "_meta" in second.message["params"]


def test_a_server_that_was_replaced_by_a_legacy_one_is_met_again_and_the_call_goes_on() -> None:
    with FakeUpstream() as fake:
        make_modern(fake)
        upstream = Upstream(Config(url=fake.url))
        assert upstream.connect(MODERN_HOST).modern
        fake.on["server/discover"] = error(400, code=-32600, message="Bad Request: Missing session ID")
        fake.on["initialize"] = fakes.initialize("s")
        fake.on["tools/call"] = fakes.stateful(["s"], fakes.echo)
        envelope = {"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN_VERSION, "progressToken": 1}}
        answer = upstream.request(lasting(), "tools/call", {"name": "x", **envelope})
        assert isinstance(answer, Result)
        assert fake.received("tools/call")[-1].message["params"] == {"name": "x", "_meta": {"progressToken": 1}}


def test_a_version_that_stays_unsupported_reaches_the_host_with_its_data() -> None:
    with FakeUpstream() as fake:
        make_modern(fake)
        unsupported = {"code": -32022, "message": "Unsupported", "data": {"supported": ["2030-01-01"]}}
        fake.on["tools/call"] = error(400, **unsupported)
        answer = Upstream(Config(url=fake.url)).request(lasting(), "tools/call", {"name": "x"})
        assert answer == Refusal(unsupported)
        assert len(fake.received("tools/call")) == len(fake.received("server/discover")) == 2


def test_a_restart_of_a_real_server_with_sessions_costs_no_call() -> None:
    with sdk_server("legacy") as server:
        upstream = Upstream(Config(url=server.url))
        upstream.connect(LEGACY_HOST)
        port = server.port
    with sdk_server("legacy", port=port):
        answer = upstream.request(lasting(), "tools/call", {"name": "meta", "arguments": {}})
        assert isinstance(answer, Result) and answer.value["content"][0]["text"] == "old"
    with sdk_server("modern", port=port):
        answer = upstream.request(lasting(), "tools/call", {"name": "meta", "arguments": {}})
        assert isinstance(answer, Result) and answer.value["content"][0]["text"] == "old"


# Arguments in headers


def test_a_real_server_gets_annotated_arguments_as_headers_before_the_tools_were_listed() -> None:
    with sdk_server("modern") as server:
        upstream = Upstream(Config(url=server.url))
        for region in ("서울", " edge ", "=?base64?x?=", "plain", ""):
            arguments = {"region": region, "query": "q"}
            answer = upstream.request(lasting(), "tools/call", {"name": "test_x_mcp_header", "arguments": arguments})
            assert isinstance(answer, Result), answer
            assert answer.value["content"][0]["text"] == f"{region} q"


def annotated(*headers: str) -> dict[str, Any]:
    return {"properties": {name.lower(): {"type": "string", "x-mcp-header": name} for name in headers}}


def test_a_header_mismatch_reads_all_pages_of_the_tools_again_and_sends_the_call_once_more() -> None:
    with FakeUpstream() as fake:
        make_modern(fake)
        fake.on["tools/list"] = fakes.in_turn(
            fakes.result({"tools": [{"name": "a", "inputSchema": annotated("A")}], "nextCursor": "2"}),
            fakes.result({"tools": [{"name": "b", "inputSchema": annotated("B")}], "nextCursor": ""}),
        )
        fake.on["tools/call"] = fakes.in_turn(error(400, code=HEADER_MISMATCH), fakes.echo)
        upstream = Upstream(Config(url=fake.url))
        answer = upstream.request(lasting(), "tools/call", {"name": "b", "arguments": {"b": "x"}})
        assert isinstance(answer, Result)
        assert [call.headers.get("mcp-param-b") for call in fake.received("tools/call")] == [None, "x"]
        assert [call.message["params"].get("cursor") for call in fake.received("tools/list")] == [None, "2"]
        assert len({call.message["id"] for call in fake.calls}) == len(fake.calls)


def test_a_mismatch_that_stays_is_the_answer_and_a_list_that_pages_for_ever_ends() -> None:
    with FakeUpstream() as fake:
        make_modern(fake)
        fake.on["tools/list"] = fakes.result({"tools": [], "nextCursor": "again"})
        fake.on["tools/call"] = error(400, code=HEADER_MISMATCH)
        upstream = Upstream(Config(url=fake.url))
        answer = upstream.request(lasting(), "tools/call", {"name": "b"})
        assert isinstance(answer, Refusal) and answer.error["code"] == HEADER_MISMATCH
        assert len(fake.received("tools/call")) == 2 and len(fake.received("tools/list")) == MAX_LIST_PAGES
        fake.on["tools/list"] = error(404, **NO_METHOD)
        assert isinstance(upstream.request(lasting(), "tools/call", {"name": "b"}), Refusal)


def test_a_tool_with_an_invalid_annotation_is_not_listed() -> None:
    with FakeUpstream() as fake:
        make_modern(fake)
        tools = [{"name": "a", "inputSchema": annotated("A")}, {"name": "b", "inputSchema": annotated("not a token")}]
        fake.on["tools/list"] = fakes.result({"tools": tools, "ttlMs": 0})
        answer = Upstream(Config(url=fake.url)).request(lasting(), "tools/list", {})
        assert answer == Result({"tools": tools[:1], "ttlMs": 0})
