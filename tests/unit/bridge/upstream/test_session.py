"""What a request looks like in each era; the official SDK's check of modern requests is the judge."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound

from sam2_mcp_bridge.actions import MODERN_VERSION, OWN_HOST, Host, Server
from sam2_mcp_bridge.host.framing import decode, encode
from sam2_mcp_bridge.upstream.modern import ModernSession, discovered
from sam2_mcp_bridge.upstream.session import Session, initialize_params, initialized

HOST = Host(MODERN_VERSION, {"elicitation": {}}, {"name": "host", "version": "2"})
META = "io.modelcontextprotocol/"
ENVELOPE = {
    META + "protocolVersion": MODERN_VERSION,
    META + "clientInfo": {"name": "other", "version": "1"},
    META + "clientCapabilities": {"sampling": {}},
    META + "logLevel": "debug",
}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
metas = st.dictionaries(st.sampled_from(["progressToken", "a/b", META + "subscriptionId"]), json_values)
methods = st.sampled_from(["tools/call", "prompts/get", "resources/read", "tools/list", "x/y"])
names = st.text(max_size=10)
params = st.fixed_dictionaries({}, optional={"name": names, "uri": names, "_meta": metas, "arguments": json_values})


@given(methods, st.none() | params, st.booleans())
def test_the_sdk_takes_every_request_as_a_modern_one(method: str, given_params: Any, has_envelope: bool) -> None:
    if has_envelope:
        given_params = {**(given_params or {}), "_meta": ENVELOPE | (given_params or {}).get("_meta", {})}
    # The name must be there for those methods that are about one.
    key = inbound.NAME_BEARING_METHODS.get(method)
    if key is not None:
        given_params = {key: "name", **(given_params or {})}
    session = ModernSession(HOST)
    dressed = session.dressed(given_params)
    headers = {name.lower(): value for name, value in session.headers(method, dressed).items()}
    body = decode(encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": dressed}).encode())
    assert isinstance(inbound.classify_inbound_request(body, headers=headers), inbound.InboundModernRoute)


def test_a_legacy_hosts_request_gets_its_envelope_from_the_handshake() -> None:
    dressed = ModernSession(HOST).dressed({"name": "x", "_meta": {"progressToken": 7}})
    assert dressed == {
        "name": "x",
        "_meta": {
            META + "protocolVersion": MODERN_VERSION,
            META + "clientInfo": HOST.info,
            META + "clientCapabilities": HOST.capabilities,
            "progressToken": 7,
        },
    }


@pytest.mark.parametrize("untouched", [{"_meta": ENVELOPE}, {"_meta": {META + "protocolVersion": "2027-01-01"}}, [1]])
def test_an_envelope_of_the_host_is_its_own_affair(untouched: Any) -> None:
    assert ModernSession(HOST).dressed(untouched) is untouched


@pytest.mark.parametrize(
    ("version", "header"), [("2027-01-01", "2027-01-01"), (7, MODERN_VERSION), ("a\r\nb", MODERN_VERSION)]
)
def test_the_version_header_is_that_of_the_envelope_where_it_can_be_one(version: Any, header: str) -> None:
    headers = ModernSession(HOST).headers("tools/list", {"_meta": {META + "protocolVersion": version}})
    assert headers == {"MCP-Protocol-Version": header, "Mcp-Method": "tools/list"}


def test_a_method_that_no_server_can_know_still_makes_a_valid_header() -> None:
    assert ModernSession(HOST).headers("읽기\r\n", None)["Mcp-Method"].isascii()


def test_a_name_that_is_no_text_has_no_header() -> None:
    assert "Mcp-Name" not in ModernSession(HOST).headers("tools/call", {"name": 7})


def test_only_lists_of_tools_are_learned_from() -> None:
    bad = {"tools": [{"name": "bad", "inputSchema": {"x-mcp-header": "A"}}]}
    session = ModernSession(HOST)
    assert session.seen("tools/list", bad) == {"tools": []}
    assert session.seen("x/list", bad) is bad
    assert Session(SERVER).seen("tools/list", bad) is bad


SERVER = Server("2025-06-18", {}, {}, None, {})


@given(st.none() | params | st.lists(st.integers()), st.booleans())
def test_a_server_with_a_handshake_never_sees_an_envelope(given_params: Any, has_envelope: bool) -> None:
    plain = Session(SERVER).dressed(given_params)
    assert plain is given_params
    if isinstance(given_params, dict) and has_envelope:
        rest = given_params.get("_meta", {})
        expected = given_params if rest else {k: v for k, v in given_params.items() if k != "_meta"}
        assert Session(SERVER).dressed({**given_params, "_meta": ENVELOPE | rest}) == expected


def test_a_session_has_its_id_and_version_in_every_header() -> None:
    assert Session(SERVER, "s").headers() == {"MCP-Protocol-Version": "2025-06-18", "Mcp-Session-Id": "s"}
    assert Session(SERVER).headers("ping", {}) == {"MCP-Protocol-Version": "2025-06-18"}


def test_a_host_is_introduced_with_its_own_words() -> None:
    legacy = Host("2025-03-26", {"roots": {}}, {"name": "h"})
    assert initialize_params(legacy) == {
        "protocolVersion": "2025-03-26",
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "h"},
    }
    assert initialize_params(HOST)["protocolVersion"] == initialize_params(OWN_HOST)["protocolVersion"] == "2025-11-25"


def test_what_a_server_says_of_itself_is_kept_and_what_is_malformed_is_left_out() -> None:
    raw = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}
    assert initialized(raw | {"instructions": "do"}) == Server(
        "2025-06-18", {"tools": {}}, {"name": "s"}, "do", raw | {"instructions": "do"}
    )
    odd = {"protocolVersion": 7, "capabilities": [], "instructions": 7}
    assert initialized(odd) == Server("2025-11-25", {}, {}, None, odd)
    assert initialized({"protocolVersion": "2025\r\nX: y"}) == Server(
        "2025-11-25", {}, {}, None, {"protocolVersion": "2025\r\nX: y"}
    )
    assert initialized({"protocolVersion": MODERN_VERSION}) is None


def test_a_discovery_must_name_the_revision() -> None:
    raw = {
        "supportedVersions": [MODERN_VERSION],
        "capabilities": {"tools": {}},
        "instructions": "do",
        "_meta": {META + "serverInfo": {"name": "s"}},
    }
    assert discovered(raw) == Server(MODERN_VERSION, {"tools": {}}, {"name": "s"}, "do", raw)
    sparse = {"supportedVersions": ["2030-01-01", MODERN_VERSION], "instructions": 7}
    assert discovered(sparse) == Server(MODERN_VERSION, {}, {}, None, sparse)
    assert discovered({"supportedVersions": ["2025-11-25"]}) is None
    assert discovered({}) is None
