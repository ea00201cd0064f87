"""TLS, proxies, tokens and headers of the real program, as a host starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.certificates import Authority
from tests.fakes.proxy import FakeProxy
from tests.fakes.upstream import FakeUpstream
from tests.unit.bridge.mcp_host import program_host

DEAD_PROXY = "http://127.0.0.1:9"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


def test_a_call_over_tls_with_client_certificate_proxy_and_headers(authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.client()
    headers = tmp_path / "headers"
    headers.write_text("X-Api-Key: k\n", encoding="utf-8")
    with (
        FakeUpstream(tls=authority.server("worker.test", clients=authority)) as upstream,
        FakeProxy({"worker.test": "127.0.0.1"}, credentials="me:word") as proxy,
        program_host(
            f"https://worker.test:{upstream.port}/mcp",
            SAM2_MCP_CA_FILE=str(authority.file),
            SAM2_MCP_CLIENT_CERT=str(cert),
            SAM2_MCP_CLIENT_KEY=str(key),
            SAM2_MCP_HEADER_FILE=str(headers),
            SAM2_MCP_PROXY=proxy.url.replace("://", "://me:word@"),
        ) as host,
    ):
        host.initialize()
        assert host.call(text="hello")["content"]
        assert {call.headers["x-api-key"] for call in upstream.calls} == {"k"}
        assert {request.method for request in proxy.requests} == {"CONNECT"}


def test_proxies_that_nobody_asked_for_are_not_used() -> None:
    variables = dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"), DEAD_PROXY)
    with FakeUpstream() as upstream, program_host(upstream.url, **variables) as host:
        host.initialize()
        assert host.call()["content"]


def test_a_token_renewed_in_its_file_costs_no_call(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first", encoding="utf-8")
    expected = "first"

    async def guarded(call: fakes.Call) -> None:
        allowed = call.headers.get("authorization") == f"Bearer {expected}"
        await (fakes.echo if allowed else fakes.raw(401, "text/plain", b"who?"))(call)

    with FakeUpstream() as upstream, program_host(upstream.url, SAM2_MCP_TOKEN_FILE=str(file)) as host:
        upstream.on["tools/call"] = guarded
        host.initialize()
        assert "isError" not in host.call()
        expected = "second"
        assert "[unauthorized]" in host.failing_call()
        file.write_text("second", encoding="utf-8")
        assert "isError" not in host.call()


@pytest.mark.parametrize(
    ("variable", "content", "code", "says"),
    [
        ("SAM2_MCP_CA_FILE", None, 3, b"cannot read"),
        ("SAM2_MCP_CA_FILE", b"no certificate", 3, b"holds no certificate in PEM format"),
        ("SAM2_MCP_CLIENT_CERT", b"no certificate", 3, b"must hold a certificate and its key"),
        ("SAM2_MCP_HEADER_FILE", None, 3, b"cannot read the file"),
        ("SAM2_MCP_HEADER_FILE", b"X-A secret", 2, b"line 1: must look like Name: value"),
    ],
)
def test_what_cannot_be_used_ends_the_bridge_before_it_serves(
    tmp_path: Path, variable: str, content: bytes | None, code: int, says: bytes
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    env = os.environ | {"SAM2_MCP_URL": "https://worker.test/mcp", variable: str(file)}
    command = [sys.executable, "-u", "-m", "sam2_mcp_bridge"]
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (code, b"")
    assert done.stderr.startswith(b"sam2-mcp: " + variable.encode()) and says in done.stderr
    assert done.stderr.count(b"\n") == 1 and b"secret" not in done.stderr
