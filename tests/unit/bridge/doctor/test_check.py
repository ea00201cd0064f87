"""The doctor against servers that are ill in one way each, on real sockets."""

import asyncio
import datetime
import hashlib
import json
import socket
import ssl
import struct
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.certificates import Authority, refusing_client_certificates
from tests.fakes.proxy import FakeProxy
from tests.fakes.upstream import FakeUpstream

from sam2_mcp_bridge import __main__ as entry
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.doctor import check
from sam2_mcp_bridge.doctor import stages as check_stages
from sam2_mcp_bridge.doctor.check import Finding
from sam2_mcp_bridge.doctor.probe import Probe
from sam2_mcp_bridge.doctor.stages import STAGES, Stages
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.transport.transport import Transport

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


@pytest.fixture
def fake() -> Iterator[FakeUpstream]:
    """A server that passes every stage."""
    with FakeUpstream() as server:
        server.on |= {"tools/list": fakes.result({"tools": TOOLS}), "tools/call": work, "POST /files": take_file}
        yield server


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


# One stage each


def test_settings_that_cannot_be_used_fail_the_first_stage(tmp_path: Path) -> None:
    for url, flags in (
        ("worker", ()),
        ("http://worker/mcp", ("--token-file", str(tmp_path / "none"))),
        ("https://worker/mcp", ("--ca-file", str(tmp_path / "none"))),
    ):
        assert "correct the setting" in str(failed(url, "settings", *flags).mend)


def test_the_settings_in_force_are_told_without_their_secrets(fake: FakeUpstream, tmp_path: Path) -> None:
    headers = tmp_path / "headers"
    headers.write_text("X-Key: secret1", encoding="utf-8")
    with FakeProxy() as proxy:
        address = proxy.url.replace("://", "://me:secret2@")
        flags = ["--header-file", str(headers), "--token", "secret3", "--proxy", address, "--ca-file", "none"]
        findings = checked(f"{fake.url}?key=secret4", *flags)
    said = findings["settings"].detail
    for words in (
        f"{fake.url}?..., ",
        "with a token",
        "1 further headers",
        f"through the proxy {proxy.url}",
        "not used for http",
    ):
        assert words in said
    assert "secret" not in str(findings) and findings["image"].state == "ok"
    assert findings["name"].detail == "127.0.0.1 is 127.0.0.1"  # the proxy's
    assert f"port {proxy.address.partition(':')[2]}" in findings["tcp"].detail


def test_an_unknown_name_fails_at_its_resolution() -> None:
    name = failed("http://no-such-host.invalid/mcp", "name")
    assert "no-such-host.invalid is no known name" in name.detail and "host.docker.internal" in str(name.mend)


@contextmanager
def slow_name_service(monkeypatch: pytest.MonkeyPatch, wait_s: float) -> Iterator[None]:
    given_up, answered, resolve = threading.Event(), threading.Event(), socket.getaddrinfo

    def slow(*args: Any, **kwargs: Any) -> Any:
        given_up.wait(wait_s)
        try:
            return resolve(*args, **kwargs)
        finally:
            answered.set()

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    yield
    given_up.set()
    assert answered.wait(10)


def test_a_name_service_that_never_answers_costs_its_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(check_stages.STAGES, "name", 0.1)
    with slow_name_service(monkeypatch, 20.0):
        assert "no answer of the name service in time" in failed("http://127.0.0.1/mcp", "name").detail


def test_a_connection_that_stands_too_late_carries_nothing(fake: FakeUpstream, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = Probe()
    probe.transport = Transport(Config(url=fake.url))
    probe.deadline_s = time.monotonic() + 0.1
    with slow_name_service(monkeypatch, 0.3), pytest.raises(Failure, match="timeout"):
        probe.ask(None, "initialize", {})
    assert fake.calls == []


def test_a_closed_port_fails_at_tcp() -> None:
    tcp = failed("http://127.0.0.1:9/mcp", "tcp")
    assert "port 9 of 127.0.0.1 takes no connection" in tcp.detail and "sam2-mcp-worker serve" in str(tcp.mend)
    assert "inside a container" in str(tcp.mend)
    assert "inside a container" not in str(failed("http://127.0.0.2:9/mcp", "tcp").mend)
    assert "start the proxy" in str(failed("http://worker/mcp", "tcp", "--proxy", "http://127.0.0.1:9").mend)


def test_the_second_address_of_a_name_will_do(fake: FakeUpstream) -> None:
    stages = Stages(lambda: Config(url=fake.url))
    stages.probe.deadline_s = time.monotonic() + 20
    stages.settings()
    stages.name()
    (good,) = stages._addresses
    stages._addresses = [(*good[:4], ("127.0.0.1", 9)), good]
    assert stages.tcp().endswith(str(fake.port))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


def test_over_tls_the_certificate_is_told(authority: Authority) -> None:
    soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3.5)
    for terms, says in (({"not_after": soon}, "more days: renew the server's certificate soon"), ({}, "more days")):
        with FakeUpstream(tls=authority.server(**terms)) as fake:
            findings = checked(fake.url, "--ca-file", str(authority.file))
            assert findings["tls"].detail.startswith("TLSv1.3, the certificate holds for ")
            assert findings["tls"].detail.endswith(says) and findings["initialize"].state == "ok"


def test_a_certificate_of_an_unknown_ca_fails_at_tls(authority: Authority) -> None:
    with FakeUpstream(tls=authority.server()) as fake:
        tls = failed(fake.url, "tls")
        assert tls.detail.startswith("[certificate]") and "Set SAM2_MCP_CA_FILE" in str(tls.mend)
        with FakeProxy() as proxy:  # in a tunnel that shows in the next stage
            assert "Set SAM2_MCP_CA_FILE" in str(failed(fake.url, "http", "--proxy", proxy.url).mend)


def test_a_server_that_wants_a_client_certificate_fails_at_tls(authority: Authority) -> None:
    server = authority.server(clients=authority)
    cert, key = authority.client()
    with FakeUpstream(tls=server) as fake:  # asyncio closes without a word
        tls = failed(fake.url, "tls", "--ca-file", str(authority.file))
        assert tls.detail.startswith("[client_certificate]") and "SAM2_MCP_CLIENT_CERT" in str(tls.mend)
        shown = ["--client-cert", str(cert), "--client-key", str(key)]
        assert checked(fake.url, "--ca-file", str(authority.file), *shown)["tls"].state == "ok"
    with refusing_client_certificates(server) as url:
        assert failed(url, "tls", "--ca-file", str(authority.file)).detail.startswith("[client_certificate]")


def test_a_server_that_resets_after_the_handshake_is_taken_to_miss_our_certificate(authority: Authority) -> None:
    server = authority.server()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    try:
                        secure = server.wrap_socket(connection, server_side=True)
                    except (OSError, ssl.SSLError):
                        continue
                    secure.close()

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}/mcp"
        tls = failed(url, "tls", "--ca-file", str(authority.file))
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)
    assert "right after the handshake" in tls.detail


def test_a_server_without_tls_fails_at_tls_and_the_scheme_is_named(
    fake: FakeUpstream, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(check_stages.STAGES, "tls", 0.5)  # it waits for the end of our request
    tls = failed(fake.url.replace("http:", "https:"), "tls", "--ca-file", str(authority.file))
    assert tls.detail.startswith("[tls]") and "http:// or https://" in str(tls.mend)


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
