"""The doctor against good servers, and its report."""

import json
import sys

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.upstream import FakeUpstream
from tests.unit.bridge.doctor.checking import DISCOVERED, checked, refusal

from sam2_mcp_bridge import __main__ as entry
from sam2_mcp_bridge.doctor import check
from sam2_mcp_bridge.doctor.stages import STAGES

# All well


def test_a_good_server_passes_every_stage(fake: FakeUpstream) -> None:
    findings = checked(fake.url)
    assert {name: finding.state for name, finding in findings.items()} == dict.fromkeys(STAGES, "ok") | {
        "tls": "skipped"
    }
    assert findings["eras"].detail == "2025-11-25 by initialize"
    assert findings["initialize"].detail == "fake 1, offers tools"
    assert findings["tools"].detail == "2: get_status, read_text"
    assert findings["status"].detail == "version 1.2.3, ready"
    assert fake.received("POST /files")[0].path == "/files?name=sam2-mcp-check.png"
    assert len({call.body for call in fake.received("POST /files")}) == 1
    checked(fake.url)
    assert len({call.body for call in fake.received("POST /files")}) == 2  # in nobody's cache


def test_a_server_of_2026_07_28_only_is_spoken_to_in_its_way(fake: FakeUpstream) -> None:
    fake.on |= {"initialize": refusal("no such method"), "server/discover": fakes.result(DISCOVERED)}
    findings = checked(fake.url)
    assert findings["eras"].detail == "2026-07-28 by server/discover" and findings["image"].state == "ok"
    assert findings["initialize"].detail == "new 9, offers tools"
    assert fake.received("notifications/initialized") == []
    assert {call.headers["mcp-protocol-version"] for call in fake.received("tools/call")} == {"2026-07-28"}


def test_both_eras_are_named_and_a_session_is_ended(fake: FakeUpstream) -> None:
    fake.on |= {"initialize": fakes.initialize("s1"), "server/discover": fakes.result(DISCOVERED)}
    assert checked(fake.url)["eras"].detail == "2025-11-25 by initialize, 2026-07-28 by server/discover"
    assert [call.headers["mcp-session-id"] for call in fake.wait_for("DELETE")] == ["s1"]


def test_what_a_server_does_not_have_is_skipped_with_the_reason(fake: FakeUpstream) -> None:
    fake.on["tools/list"] = fakes.in_turn(
        fakes.result({"tools": [{"name": "a", "inputSchema": {"type": "object"}}], "nextCursor": "2"}),
        fakes.result({"tools": []}),
    )
    findings = checked(fake.url)
    assert [call.message["params"] for call in fake.received("tools/list")] == [{}, {"cursor": "2"}]
    assert (findings["tools"].detail, findings["status"].state, findings["image"].state) == (
        "1: a",
        "skipped",
        "skipped",
    )
    fake.on["tools/list"] = fakes.result({"tools": []})
    assert checked(fake.url)["tools"].detail == "0"

    async def without_tools(call: fakes.Call) -> None:
        await fakes.result({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}})(call)

    fake.on["initialize"] = without_tools
    findings = checked(fake.url)
    assert findings["initialize"].detail == "a server without a name, offers nothing"
    assert findings["tools"].detail == "the server offers no tools"


@pytest.mark.parametrize("status", [404, 405])
def test_a_server_without_files_is_not_ill(fake: FakeUpstream, status: int) -> None:
    fake.on["POST /files"] = fakes.raw(status, "text/plain", b"no")
    image = checked(fake.url)["image"]
    assert (image.state, image.detail) == ("skipped", f"the server takes no files (HTTP {status})")


# The report


def test_the_report_for_machines_has_stable_keys(fake: FakeUpstream, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(["--check", fake.url, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert list(report) == ["ok", "failed_stage", "stages"] and report["ok"] and report["failed_stage"] is None
    assert [list(stage) for stage in report["stages"]] == [["stage", "state", "detail", "mend", "ms"]] * len(STAGES)
    fake.on["tools/list"] = fakes.result({"tools": "한"})
    assert check.main([f"--check={fake.url}", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert not report["ok"] and report["failed_stage"] == "tools"


def test_the_report_for_people_is_plain_text_whatever_a_server_says(
    fake: FakeUpstream, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAM2_MCP_URL", fake.url)
    text = "\x1b[2J한\u2028" + "x" * 1000
    fake.on["tools/call"] = fakes.result({"content": [{"type": "text", "text": text}], "isError": True})
    assert check.main(["--check"]) == 1
    out = capsys.readouterr().out
    assert out.isascii() and "\x1b" not in out and "\\ud55c" in out and "xxx ..." in out
    assert "failed       status" in out and "mend: see the worker's log\n" in out and "not reached  image\n" in out


def test_wrong_usage_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {"no such flag: --nonsense": "--nonsense", "a value without a flag": "extra"}
    for says, word in wrong.items():
        with pytest.raises(SystemExit) as caught:
            check.main(["--check", "http://a/mcp", word])
        assert caught.value.code == 2 and says in capsys.readouterr().err


def test_the_entry_point_leads_here_and_says_when_httpx_is_missing(
    fake: FakeUpstream, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert entry.main([f"--check={fake.url}"]) == 0
    assert "ok           image" in capfd.readouterr().out
    monkeypatch.delattr("sam2_mcp_bridge.doctor.check")
    monkeypatch.setitem(sys.modules, "sam2_mcp_bridge.doctor.check", None)
    assert entry.main(["--check", fake.url]) == 3
    assert "httpx cannot be imported" in capfd.readouterr().err
