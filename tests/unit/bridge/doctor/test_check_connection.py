"""The doctor at settings, names, TCP and TLS, on real sockets."""

import datetime
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.certificates import Authority, refusing_client_certificates
from tests.fakes.proxy import FakeProxy
from tests.fakes.upstream import FakeUpstream
from tests.unit.bridge.doctor.checking import checked, failed

from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.doctor import stages as check_stages
from sam2_mcp_bridge.doctor.probe import Probe
from sam2_mcp_bridge.doctor.stages import Stages
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.transport.transport import Transport


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


def test_a_server_that_ends_or_resets_right_after_the_handshake_wants_a_client_certificate(fake: FakeUpstream) -> None:
    stages = Stages(lambda: Config(url=fake.url))
    stages.settings()
    for ends, complains in (b"speaks", False), (b"", True), (None, True):
        with (
            socket.create_server(("127.0.0.1", 0)) as listener,
            socket.create_connection(listener.getsockname()) as peer,
        ):
            connection, _ = listener.accept()
            with connection:
                if ends is None:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    connection.sendall(ends)
            with pytest.raises(Failure) if complains else nullcontext() as caught:
                stages._await_client_verdict(peer)
            assert not complains or caught.value.code == "client_certificate"


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
