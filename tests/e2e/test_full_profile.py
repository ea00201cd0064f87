"""Profile full as a program, between hosts and real servers of both eras, in every mix."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.e2e.full_host import ERAS, PREFIX, FarServer, FullHost, far_servers, full_host


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, FarServer]]:
    with far_servers() as running:
        yield running


@pytest.fixture(params=[(host, server) for host in ("legacy", "modern") for server in ERAS], ids=" on ".join)
def host(request: pytest.FixtureRequest, servers: dict[str, FarServer]) -> Iterator[FullHost]:
    """A host of each era on a server of each."""
    era, server = request.param
    with full_host(servers[server], era) as made:
        told = made.start()
        assert told["capabilities"]["tools"] == {"listChanged": True}
        yield made


def test_tools_are_listed_and_called_and_progress_comes_for_a_token(host: FullHost) -> None:
    assert {"hold", "release"} <= {tool["name"] for tool in host.do("tools/list")["tools"]}
    assert host.tool("test_tool_with_progress") == "reported three times"
    assert host.tool("test_tool_with_progress", {"progressToken": "t"}) == "reported three times"
    progress = [message["params"] for message in host.notices]
    assert [(one["progressToken"], one["progress"]) for one in progress] == [("t", 0), ("t", 50), ("t", 100)]
    host.notices.clear()
    assert host.rest() == []


def test_log_messages_come_on_opt_in_only(host: FullHost) -> None:
    host.tool("test_tool_with_logging")
    assert host.notices == []
    if host.modern:
        host.tool("test_tool_with_logging", {PREFIX + "logLevel": "info"})
    else:
        host.do("logging/setLevel", level="info")
        host.tool("test_tool_with_logging")
    assert [message["method"] for message in host.notices] == ["notifications/message"] * 3


def test_calls_run_side_by_side_and_are_answered_as_they_end(host: FullHost) -> None:
    tag = f"{id(host)}"
    held = [host.begin_tool("hold", name=f"{tag} {number}") for number in range(4)]
    for number in reversed(range(4)):
        host.tool("until", moment=f"started {tag} {number}")
        host.tool("release", name=f"{tag} {number}")
        answer = host.finish(held[number])
        assert answer["result"]["content"][0]["text"] == f"{tag} {number}"


def test_a_cancelled_call_is_cancelled_at_the_server_and_gets_no_line(host: FullHost) -> None:
    name = f"cancel {id(host)}"
    held = host.begin_tool("hold", name=name)
    host.tool("until", moment=f"started {name}")
    host.cancel(held)
    assert host.tool("until", moment=f"cancelled {name}")
    assert all(message.get("id") != held for message in host.rest())


@pytest.mark.parametrize("server", ["legacy", "modern"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_call_beyond_its_deadline_is_cancelled_at_the_server(
    servers: dict[str, FarServer], era: str, server: str
) -> None:
    name = f"late {era} {server}"
    with full_host(servers[server], era, None, "--deadline", "2") as host:
        host.start()
        result = host.finish(host.begin_tool("hold", name=name))["result"]
        assert result["isError"] is True and result["content"][0]["text"].startswith("[deadline] hold")
        assert host.tool("until", moment=f"cancelled {name}")


def test_what_a_call_needs_of_the_host_is_asked_in_the_way_of_its_era(host: FullHost) -> None:
    assert host.tool("test_input_required_result_elicitation") == "Hello, Kim!"
    assert host.tool("test_input_required_result_sampling") == "Paris"
    assert host.tool("test_input_required_result_list_roots") == "file:///home"
    assert host.tool("test_input_required_result_multiple_inputs") == "3 answers"
    assert host.tool("test_input_required_result_request_state") == "state-ok"
    assert host.tool("test_input_required_result_multi_round") == "Kim likes red"
    assert len(host.asked) == 9


def test_a_call_cancelled_while_its_host_is_asked_takes_the_question_back(servers: dict[str, FarServer]) -> None:
    for server in ERAS:
        with full_host(servers[server], "legacy") as host:
            host.start()
            host.answering = lambda request: None
            call = host.begin_tool("test_input_required_result_elicitation")
            while not host.asked:
                host.pump()
            host.cancel(call)
            withdrawn = host.notice("notifications/cancelled")
            assert withdrawn["params"]["requestId"] == host.asked[0]["id"]
            host.send_raw({"jsonrpc": "2.0", "id": host.asked[0]["id"], "result": {"action": "accept"}})
            assert host.tool("release", name="nobody") == "released"


@pytest.mark.parametrize(("era", "server"), [("legacy", "legacy"), ("legacy", "modern"), ("modern", "legacy")])
def test_a_host_that_offers_nothing_is_not_asked(servers: dict[str, FarServer], era: str, server: str) -> None:
    with full_host(servers[server], era, {}) as host:
        host.start()
        answer = host.finish(host.begin_tool("test_input_required_result_list_roots"))
        assert "error" in answer or answer["result"]["isError"] is True
        assert host.asked == [] and host.notices == []


def test_changes_of_lists_and_resources_reach_those_who_asked(host: FullHost) -> None:
    uri = "test://static-text"
    if host.modern:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": [uri]}
        subscription = host.begin("subscriptions/listen", notifications=wanted)
        acknowledged = host.notice("notifications/subscriptions/acknowledged")
        assert acknowledged["params"]["notifications"] == wanted
    else:
        host.do("resources/subscribe", uri=uri)
    until_heard(host, "tools_changed", "notifications/tools/list_changed")
    updated = until_heard(host, "resource_changed", "notifications/resources/updated", uri=uri)
    assert updated["params"]["uri"] == uri
    if host.modern:
        assert updated["params"]["_meta"][PREFIX + "subscriptionId"] == subscription
        host.cancel(subscription)
    else:
        assert "_meta" not in updated["params"]
    host.tool("tools_changed")


def until_heard(host: FullHost, tool: str, method: str, **arguments: str) -> dict[str, object]:
    """Call this until its notification comes: when a stream is open is not told to the host."""
    while not any(message["method"] == method for message in host.notices):
        host.tool(tool, **arguments)
    return host.notice(method)


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("flags", [("--era", "legacy"), ("--era", "modern"), ("--era", "legacy", "--stateless")])
def test_a_server_that_starts_anew_costs_no_line_and_is_listened_to_again(era: str, flags: tuple[str, ...]) -> None:
    server = FarServer(*flags).ready()
    try:
        with full_host(server, era) as host:
            host.start()
            if era == "modern":
                host.begin("subscriptions/listen", notifications={"toolsListChanged": True})
                host.notice("notifications/subscriptions/acknowledged")
            server.stop()
            server.start(*flags)
            assert host.tool("release", name="x") == "released"
            if era == "legacy" and "--stateless" not in flags:
                until_heard(host, "tools_changed", "notifications/tools/list_changed")
            assert all("error" not in message or era == "modern" for message in host.rest())
    finally:
        server.close()


@pytest.mark.parametrize(("before", "after"), [("legacy", "modern"), ("modern", "legacy")])
def test_a_server_may_come_back_in_the_other_era(before: str, after: str) -> None:
    server = FarServer("--era", before).ready()
    try:
        with full_host(server, "legacy") as host:
            host.start()
            host.do("resources/subscribe", uri="test://static-text")
            server.stop()
            server.start("--era", after)
            assert host.tool("release", name="x") == "released"
            until_heard(host, "tools_changed", "notifications/tools/list_changed")
            until_heard(host, "resource_changed", "notifications/resources/updated", uri="test://static-text")
            assert host.tool("test_input_required_result_elicitation") == "Hello, Kim!"
    finally:
        server.close()


@pytest.mark.parametrize("server_era", ["legacy", "modern"])
def test_a_host_that_starts_before_its_server_is_told_when_it_is_there(server_era: str) -> None:
    server = FarServer(down=True)
    try:
        with full_host(server, "legacy") as host:
            assert host.start()["serverInfo"]["name"] == "sam2-mcp"
            server.start("--era", server_era)
            for kind in ("tools", "prompts", "resources"):
                host.notice(f"notifications/{kind}/list_changed")
            assert {"hold", "release"} <= {tool["name"] for tool in host.do("tools/list")["tools"]}
            until_heard(host, "tools_changed", "notifications/tools/list_changed")
    finally:
        server.close()


@pytest.mark.parametrize("server", ERAS)
def test_a_host_without_handshake_or_envelope_is_served(servers: dict[str, FarServer], server: str) -> None:
    with full_host(servers[server], "legacy") as host:
        assert host.do("ping") == {}
        assert host.tool("test_tool_with_progress", {"progressToken": 1}) == "reported three times"
        assert len(host.notices) == 3


@pytest.mark.parametrize(("name", "is_station"), [("mcp-station", True), ("Claude", False)])
def test_auto_looks_at_the_first_request(servers: dict[str, FarServer], name: str, is_station: bool) -> None:
    with full_host(servers["legacy"], "legacy", None, "--profile", "auto") as host:
        client = {"name": name, "version": "1"}
        told = host.do("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        assert (told["serverInfo"]["name"] == "sam2-mcp") is is_station


ONLY_FULL = {"relay", "eras", "asking", "requests", "notices", "listening", "host_session", "listen", "modern"}


@pytest.mark.parametrize(("profile", "loaded"), [("station", set()), ("full", ONLY_FULL), ("auto", ONLY_FULL)])
def test_the_station_pays_for_nothing_that_only_other_hosts_need(profile: str, loaded: set[str]) -> None:
    """And those have all of it before standard input is read."""
    code = (
        "import os, sys\n"
        "from sam2_mcp_bridge import app, config\n"
        "from sam2_mcp_bridge.process import stdio\n"
        f"app.Bridge(config.Config(profile={profile!r}), stdio.Wire(*os.pipe()))\n"
        "print(*(name.rpartition('.')[2] for name in sys.modules if name.startswith('sam2_mcp_bridge.')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    assert ONLY_FULL & set(done.stdout.split()) == loaded
