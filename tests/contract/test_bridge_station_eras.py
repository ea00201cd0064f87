"""The station, which knows only the oldest revision, on servers of every era; and what each is told at a deadline."""

import json

import pytest
from tests.contract.station_host import Start
from tests.fakes import upstream as fakes
from tests.fakes.sdk_server import sdk_server
from tests.fakes.upstream import FakeUpstream


@pytest.mark.parametrize("stateless", [True, False])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_tools_are_listed_and_called_on_a_server_of_one_era(start: Start, era: str, stateless: bool) -> None:
    with sdk_server(era, stateless=stateless) as server, start(server.url) as host:
        assert host.initialize()["protocolVersion"] == "2024-11-05"
        names = [tool["name"] for tool in host.request("tools/list", {})["result"]["tools"]]
        assert "인사" in names
        assert host.call("인사", kwargs={"이름": "영희"})["content"][0]["text"] == "안녕 영희"
        assert host.call("test_tool_with_progress")["content"][0]["text"] == "reported three times"
        assert host.call("test_x_mcp_header", region="서울")["content"][0]["text"] == "서울 "
        assert "Unknown tool" in json.dumps(host.call("nope"))
        assert host.silent()


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_at_the_deadline_a_real_tool_is_stopped(start: Start, era: str) -> None:
    with sdk_server(era) as server, start(server.url, deadline_s=1.0) as host:
        host.initialize()
        assert host.failing_call("slow").startswith("[deadline]")
        assert server.started.is_set() and server.cancelled.wait(20)
        assert host.silent()


def test_at_the_deadline_and_at_a_cancel_a_server_with_sessions_is_told(start: Start) -> None:
    with FakeUpstream() as upstream:
        upstream.on["initialize"] = fakes.initialize("s")
        upstream.on["tools/call"] = fakes.hang()
        upstream.on["notifications/cancelled"] = fakes.hang()  # nobody waits for it
        with start(upstream.url, deadline_s=3.0) as host:
            host.initialize()
            host.send("tools/call", {"name": "x"}, id="c")
            upstream.wait_for("tools/call")
            host.send("notifications/cancelled", {"requestId": "c"})
            assert host.silent()
            assert host.failing_call().startswith("[deadline]")
            told = upstream.wait_for("notifications/cancelled", 2)
        ids = [call.message["id"] for call in upstream.received("tools/call")]
        assert {notice.message["params"]["requestId"] for notice in told} == set(ids)
        assert all(call.cut.wait(10) for call in upstream.received("tools/call"))
