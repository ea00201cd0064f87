"""Care of the connection: TLS, proxies, tokens and headers, on real sockets."""

import math
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from tests.fakes import upstream as fakes
from tests.fakes.certificates import LONG_AGO, NOT_SO_LONG_AGO, Authority, refusing_client_certificates
from tests.fakes.proxy import FakeProxy
from tests.fakes.upstream import FakeUpstream

from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure, SetupError
from sam2_mcp_bridge.transport import tls
from sam2_mcp_bridge.transport import transport as module
from sam2_mcp_bridge.transport.transport import Aborted, Exchange, Transport

MESSAGE = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


def read(transport: Transport, exchange: Exchange) -> bytes:
    with transport.send(exchange, "POST", {}, MESSAGE) as response:
        return response.read()


def send(
    transport: Transport, content: Any = MESSAGE, *, method: str = "POST", path: str | None = None
) -> httpx.Response:
    with transport.send(Exchange(time.monotonic() + 20), method, {}, content, path) as response:
        response.read()
        return response


def status(config: Config) -> int:
    return send(Transport(config)).status_code


def failure(config: Config) -> Failure:
    with pytest.raises(Failure) as caught:
        send(Transport(config))
    assert str(caught.value).startswith(f"[{caught.value.code}] ")
    return caught.value


def setup_error(**settings: Any) -> SetupError:
    with pytest.raises(SetupError) as caught:
        Transport(Config(**({"url": "https://worker/mcp"} | settings)))
    return caught.value


def localhost(fake: FakeUpstream) -> str:
    return fake.url.replace("127.0.0.1", "localhost")


# TLS


def test_a_server_with_an_own_ca_is_trusted_by_its_file_or_folder(authority: Authority, tmp_path: Path) -> None:
    with FakeUpstream(tls=authority.server()) as fake:
        assert status(Config(url=fake.url, ca_file=str(authority.file))) == 200
        (authority.folder / "README").write_text("no certificate", encoding="utf-8")
        (authority.folder / "sub").mkdir()
        assert status(Config(url=fake.url, ca_file=str(authority.folder))) == 200


def test_a_ca_file_may_hold_several_certificates_and_comments_or_the_servers_own(
    authority: Authority, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(
        "# 회사 CA\n".encode() + Authority(tmp_path / "other").file.read_bytes() + authority.file.read_bytes()
    )
    with FakeUpstream(tls=authority.server()) as fake:
        assert status(Config(url=fake.url, ca_file=str(bundle))) == 200
    issued, context = authority.ca.issue_cert("localhost"), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "server.pem"))
    with FakeUpstream(tls=context) as fake:
        assert status(Config(url=localhost(fake), ca_file=str(tmp_path / "server.pem"))) == 200


def test_a_certificate_that_cannot_be_accepted_is_named_with_its_mend_and_nothing_is_sent(
    authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other")
    tomorrow = LONG_AGO.replace(year=2999)
    cases: list[tuple[ssl.SSLContext, str | None, str, str]] = [
        (authority.server(), None, "unable to get local issuer", "Set SAM2_MCP_CA_FILE of the bridge"),
        (authority.server(), str(other.file), "unable to get local issuer", "Set SAM2_MCP_CA_FILE of the bridge"),
        (authority.server("worker.test"), str(authority.file), "Hostname mismatch", "Set SAM2_MCP_URL to a name"),
        (
            authority.server("localhost", not_before=LONG_AGO, not_after=NOT_SO_LONG_AGO),
            str(authority.file),
            "certificate has expired",
            "Renew the server's certificate",
        ),
        (
            authority.server("localhost", not_before=tomorrow, not_after=tomorrow.replace(year=3000)),
            str(authority.file),
            "certificate is not yet valid",
            "Set the clock",
        ),
    ]
    for server, ca_file, detail, mend in cases:
        with FakeUpstream(tls=server) as fake:
            refused = failure(Config(url=localhost(fake), ca_file=ca_file))
            assert refused.code == "certificate" and not refused.transient and fake.calls == []
            assert detail in str(refused) and mend in str(refused)


def test_an_address_that_the_certificate_does_not_hold_is_a_wrong_name(authority: Authority) -> None:
    with FakeUpstream(tls=authority.server("localhost")) as fake:
        assert "Set SAM2_MCP_URL to a name" in str(failure(Config(url=fake.url, ca_file=str(authority.file))))


def test_a_client_certificate_is_shown_where_it_is_wanted(authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.client()
    together = tmp_path / "together.pem"
    together.write_bytes(cert.read_bytes() + key.read_bytes())
    with FakeUpstream(tls=authority.server(clients=authority)) as fake:
        trusting = {"url": fake.url, "ca_file": str(authority.file)}
        assert status(Config(**trusting, client_cert=str(cert), client_key=str(key))) == 200
        assert status(Config(**trusting, client_cert=str(together))) == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_missing_or_foreign_client_certificate_is_named(
    authority: Authority, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    cert, key = Authority(tmp_path / "other").client()
    server = authority.server(clients=authority)
    server.minimum_version = server.maximum_version = version
    with refusing_client_certificates(server) as url:
        foreign = failure(Config(url=url, ca_file=str(authority.file), client_cert=str(cert), client_key=str(key)))
        assert foreign.code == "client_certificate" and "SAM2_MCP_CLIENT_CERT" in str(foreign)
        missing = failure(Config(url=url, ca_file=str(authority.file)))
        # TLS 1.2 has no word of its own for it.
        assert missing.code == ("tls" if version == ssl.TLSVersion.TLSv1_2 else "client_certificate")
        assert not missing.transient and "SAM2_MCP_CLIENT_CERT" in str(missing)


def test_a_connection_that_ends_without_a_goodbye_of_tls_leaves_open_whether_the_call_ran(authority: Authority) -> None:
    with FakeUpstream(tls=authority.server()) as fake:
        fake.on["tools/list"] = fakes.reset()
        assert failure(Config(url=fake.url, ca_file=str(authority.file))).code == "connection_broken"


def test_tls_to_a_server_without_it_names_the_scheme(authority: Authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(1)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                while connection.recv(1024):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        refused = failure(Config(url=f"https://127.0.0.1:{listener.getsockname()[1]}/mcp", ca_file=str(authority.file)))
        thread.join(10)
        assert refused.code == "tls" and "must begin with http:// or https://" in str(refused)


def test_files_that_tls_cannot_use_are_setup_errors_with_their_names(authority: Authority, tmp_path: Path) -> None:
    empty, damaged = tmp_path / "empty", tmp_path / "damaged.pem"
    empty.mkdir()
    damaged.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", encoding="ascii")
    (cert, key), (other_cert, _) = authority.client(), authority.client("other")
    locked = tmp_path / "locked.pem"
    private = load_pem_private_key(key.read_bytes(), None)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word"))
    locked.write_bytes(pem)
    for settings, says in (
        ({"ca_file": str(tmp_path / "none")}, "SAM2_MCP_CA_FILE: cannot read"),
        ({"ca_file": str(empty)}, f"SAM2_MCP_CA_FILE: {empty} holds no certificate in PEM format"),
        ({"ca_file": str(key)}, "holds no certificate in PEM format"),
        ({"ca_file": str(damaged)}, "damaged.pem holds a damaged certificate"),
        ({"client_cert": str(tmp_path / "none")}, "SAM2_MCP_CLIENT_CERT: cannot read"),
        ({"client_cert": str(cert), "client_key": str(tmp_path / "none")}, "none: No such file"),
        ({"client_cert": str(cert)}, "must hold a certificate and its key in PEM format"),
        ({"client_cert": str(other_cert), "client_key": str(key)}, "(key values mismatch)"),
        ({"client_cert": str(cert), "client_key": str(locked)}, "SAM2_MCP_CLIENT_KEY: the key has a passphrase"),
    ):
        error = setup_error(**settings)
        assert error.exit_code == 3 and says in str(error)


def test_uploads_and_calls_share_one_context(authority: Authority) -> None:
    config = Config(url="https://worker/mcp", ca_file=str(authority.file))
    assert Transport(config).tls is Transport(config).tls


def test_what_no_tls_error_is_behind_is_no_trouble_of_tls() -> None:
    assert tls.trouble(OSError("refused")) is None
    assert tls.trouble(ssl.SSLError(1, "without a reason")) == ("tls", "without a reason", "")


def test_plain_http_loads_no_tls_and_no_proxy_settings() -> None:
    code = (
        "import sys\n"
        "from sam2_mcp_bridge.config import Config\n"
        "from sam2_mcp_bridge.transport.transport import Transport\n"
        "Transport(Config(ca_file='/nowhere', client_cert='/nowhere'))\n"
        "heavy = ('_ssl', 'certifi', 'urllib.request', 'sam2_mcp_bridge.transport.tls')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "['certifi']" or done.stdout.strip() == "[]"  # certifi as a stand-in


# Proxies


def test_a_plain_call_goes_through_the_proxy_that_is_set() -> None:
    with FakeUpstream() as fake, FakeProxy({"worker.test": "127.0.0.1"}) as proxy:
        config = Config(url=f"http://worker.test:{fake.port}/mcp", proxy=proxy.url, token="word")
        assert status(config) == 200
        (seen,) = proxy.requests
        assert (seen.method, seen.target) == ("POST", config.url)
        assert fake.calls[0].headers["authorization"] == "Bearer word"


def test_over_tls_the_proxy_sees_neither_the_call_nor_the_token(authority: Authority) -> None:
    with (
        FakeUpstream(tls=authority.server("worker.test")) as fake,
        FakeProxy({"worker.test": "127.0.0.1"}, credentials="me:pass word") as proxy,
    ):
        address = proxy.url.replace("://", "://me:pass%20word@")
        config = Config(
            url=f"https://worker.test:{fake.port}/mcp", proxy=address, token="word", ca_file=str(authority.file)
        )
        assert status(config) == 200
        (seen,) = proxy.requests
        assert (seen.method, seen.target) == ("CONNECT", f"worker.test:{fake.port}")
        assert "authorization" not in seen.headers and "Bearer" not in str(seen)
        assert fake.calls[0].headers["authorization"] == "Bearer word"
        assert "proxy-authorization" not in fake.calls[0].headers


def test_the_proxy_itself_may_speak_tls(authority: Authority) -> None:
    with (
        FakeUpstream(tls=authority.server()) as secure,
        FakeUpstream() as plain,
        FakeProxy(tls=authority.server()) as proxy,
    ):
        for fake in (secure, plain):
            assert status(Config(url=fake.url, proxy=proxy.url, ca_file=str(authority.file))) == 200
        assert [request.method for request in proxy.requests] == ["CONNECT", "POST"]


def test_a_proxy_that_refuses_is_named_without_its_password(authority: Authority) -> None:
    with FakeProxy(credentials="me:secret") as proxy:
        address = proxy.url.replace("://", "://me:wrong@")
        refused = failure(Config(url="https://worker.test/mcp", proxy=address, ca_file=str(authority.file)))
        assert refused.code == "proxy_refused" and f"the proxy {proxy.url}" in str(refused)
        assert "407" in str(refused) and "wrong" not in str(refused) and len(proxy.requests) == 1
        assert status(Config(url="http://worker.test/mcp", proxy=proxy.url)) == 407


def test_a_worker_that_restarts_behind_a_proxy_is_waited_for(authority: Authority) -> None:
    with FakeUpstream(tls=authority.server()) as fake, FakeProxy(status="502 Bad Gateway") as proxy:
        transport = Transport(Config(url=fake.url, proxy=proxy.url, ca_file=str(authority.file)))

        def come_back() -> None:
            while len(proxy.requests) < 2:
                time.sleep(0.01)
            proxy.status = None

        thread = threading.Thread(target=come_back)
        thread.start()
        assert send(transport).status_code == 200
        thread.join()
        proxy.status = "502 Bad Gateway"
        with pytest.raises(Failure, match=r"\[unreachable\].*through the proxy http.*502 Bad Gateway"):
            read(transport, Exchange(time.monotonic() + 0.2))


def test_a_proxy_that_is_down_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_PATIENCE_S", 0.0)
    down = failure(Config(url="http://worker.test/mcp", proxy="http://127.0.0.1:9"))
    assert down.code == "unreachable" and "through the proxy http://127.0.0.1:9" in str(down)


@pytest.mark.parametrize("through", [nullcontext, FakeProxy])
def test_a_call_over_tls_can_be_aborted_also_in_a_tunnel(authority: Authority, through: Any) -> None:
    with FakeUpstream(tls=authority.server()) as fake, through() as proxy:
        fake.on["tools/list"] = fakes.hang(with_head=False)
        transport = Transport(Config(url=fake.url, proxy=proxy and proxy.url, ca_file=str(authority.file)))
        exchange = Exchange(math.inf)

        def call_and_be_cut() -> None:
            with pytest.raises(Failure, match="connection_broken"):
                read(transport, exchange)

        thread = threading.Thread(target=call_and_be_cut)
        thread.start()
        (call,) = fake.wait_for("tools/list")
        exchange.abort()
        assert call.cut.wait(10)
        thread.join(10)
        assert not thread.is_alive()


PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


def test_proxies_of_the_environment_are_used_on_request_only(environment: pytest.MonkeyPatch) -> None:
    with FakeUpstream() as fake, FakeProxy() as proxy:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            environment.setenv(name, proxy.url)
        assert status(Config(url=fake.url)) == 200 and proxy.requests == []
        assert status(Config(url=fake.url, proxy_from_env=True)) == 200 and len(proxy.requests) == 1


@pytest.mark.parametrize(
    ("url", "variables", "proxy"),
    [
        ("http://worker/mcp", {}, None),
        ("http://worker/mcp", {"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "http://s:2"}, "http://p:1"),
        ("https://worker/mcp", {"HTTP_PROXY": "http://p:1", "HTTPS_PROXY": "http://s:2"}, "http://s:2"),
        ("https://worker/mcp", {"https_proxy": "p:1"}, "http://p:1"),
        ("https://worker/mcp", {"HTTP_PROXY": "http://p:1"}, None),
        ("https://worker/mcp", {"ALL_PROXY": "http://me:word@p:1"}, "http://p:1"),
        ("https://worker.test/mcp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ("https://worker.test/mcp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "other, .test"}, None),
        ("https://worker.test/mcp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "er.test"}, "http://p:1"),
        ("https://worker:8765/mcp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "worker:8765"}, None),
        ("https://worker:8766/mcp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "worker:8765"}, "http://p:1"),
        ("https://[::1]:8765/mcp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "::1"}, None),
        ("https://127.0.0.1/mcp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "localhost,127.0.0.1"}, None),
    ],
)
def test_the_environment_names_the_proxy_as_it_does_for_others(
    environment: pytest.MonkeyPatch, url: str, variables: dict[str, str], proxy: str | None
) -> None:
    for name, value in variables.items():
        environment.setenv(name, value)
    assert Transport(Config(url=url, proxy_from_env=True)).proxy == proxy
    assert Transport(Config(url=url, proxy_from_env=True, proxy="http://set:3")).proxy == "http://set:3"


@pytest.mark.parametrize("proxy", ["socks5://me:secret@p:1", "http://me:secret@p:x", "http://me:secret@[:1"])
def test_a_proxy_of_the_environment_that_cannot_be_used_is_a_setup_error(
    environment: pytest.MonkeyPatch, proxy: str
) -> None:
    environment.setenv("ALL_PROXY", proxy)
    error = setup_error(proxy_from_env=True)
    assert error.exit_code == 2 and str(error).startswith("SAM2_MCP_PROXY_FROM_ENV: ") and "secret" not in str(error)


# Tokens, headers, redirects


def guarded(*tokens: str) -> fakes.Behaviour:
    async def behave(call: fakes.Call) -> None:
        allowed = call.headers.get("authorization") in {f"Bearer {token}" for token in tokens}
        await (fakes.result({"tools": []}) if allowed else fakes.raw(401, "text/plain", b"who?"))(call)

    return behave


def test_a_token_that_was_renewed_in_its_file_is_taken_up_without_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("new\n", encoding="utf-8")
    with FakeUpstream() as fake:
        fake.on["tools/list"] = guarded("new")
        transport = Transport(Config(url=fake.url, token="old", token_file=str(file)))
        assert send(transport).status_code == 200 and send(transport).status_code == 200
        given = [call.headers["authorization"] for call in fake.received("tools/list")]
        assert given == ["Bearer old", "Bearer new", "Bearer new"]
        assert all(call.body == MESSAGE for call in fake.received("tools/list"))


def test_a_refused_token_is_looked_up_once_for_each_refusal(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with FakeUpstream() as fake:
        fake.on["tools/list"] = guarded("right")
        transport = Transport(Config(url=fake.url, token="old", token_file=str(file)))
        for content in (None, b"", b"old", b"two words", b"\xff"):
            if content is not None:
                file.write_bytes(content)
            assert send(transport).status_code == 401
        assert len(fake.received("tools/list")) == 5
        file.write_text("wrong", encoding="utf-8")
        assert send(transport).status_code == 401
        assert len(fake.received("tools/list")) == 7
        file.write_text("right", encoding="utf-8")
        assert send(transport).status_code == 200
        assert len(fake.received("tools/list")) == 9


def test_a_token_that_is_in_no_file_is_not_renewed() -> None:
    with FakeUpstream() as fake:
        fake.on["tools/list"] = guarded("right")
        assert status(Config(url=fake.url, token="old")) == 401 and len(fake.calls) == 1


def test_a_token_that_another_call_has_renewed_is_used_without_reading(tmp_path: Path) -> None:
    with FakeUpstream() as fake:
        transport = Transport(Config(url=fake.url, token="old", token_file=str(tmp_path / "none")))

        async def renewed_meanwhile(call: fakes.Call) -> None:
            transport._token = "new"
            await fakes.raw(401, "text/plain", b"")(call)

        fake.on["tools/list"] = fakes.in_turn(renewed_meanwhile, guarded("new"))
        assert send(transport).status_code == 200


def test_an_upload_is_streamed_afresh_with_the_renewed_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("new", encoding="utf-8")
    with FakeUpstream() as fake:
        fake.on["tools/list"] = guarded("new")
        transport = Transport(Config(url=fake.url, token="old", token_file=str(file)))
        with transport.send(
            Exchange(time.monotonic() + 20), "POST", {"Content-Length": str(len(MESSAGE))}, lambda: iter([MESSAGE])
        ) as response:
            assert response.status_code == 200
        assert [call.body for call in fake.calls] == [MESSAGE, MESSAGE]


def test_headers_of_the_file_are_sent_beside_the_bridges_own() -> None:
    with FakeUpstream() as fake:
        headers = (("X-Api-Key", "k"), ("user-agent", "mine"), ("Cookie", "a=b"))
        status(Config(url=fake.url, headers=headers))
        got = fake.calls[0].headers
        assert (got["x-api-key"], got["user-agent"], got["cookie"]) == ("k", "mine", "a=b")
        assert got["accept-encoding"] == "identity" and got["connection"] == "close"


def moved(to: str, status: int = 307) -> fakes.Behaviour:
    return fakes.raw(status, "", b"", f"location: {to}")


def test_a_permanent_redirect_at_the_same_origin_is_followed_and_kept() -> None:
    with FakeUpstream() as fake:
        fake.on["tools/list"] = fakes.in_turn(moved("/mcp/", 308), fakes.result({"tools": []}))
        transport = Transport(Config(url=fake.url, token="word"))
        assert send(transport).status_code == 200 and send(transport).status_code == 200
        assert [call.path for call in fake.calls] == ["/mcp", "/mcp/", "/mcp/"]
        assert {call.headers["authorization"] for call in fake.calls} == {"Bearer word"}


@pytest.mark.parametrize(("method", "status"), [("POST", 307), ("GET", 302), ("GET", 307)])
def test_what_is_elsewhere_for_a_while_is_asked_for_at_the_endpoint_again(method: str, status: int) -> None:
    with FakeUpstream() as fake:
        name, done = "tools/list" if method == "POST" else method, fakes.raw(200, "", b"")
        fake.on[name] = fakes.in_turn(moved("/login", status), fakes.raw(503, "", b""), done)
        transport = Transport(Config(url=fake.url))
        content = MESSAGE if method == "POST" else b""
        assert [send(transport, content, method=method).status_code for _ in range(2)] == [503, 200]
        assert [call.path for call in fake.calls] == ["/mcp", "/login", "/mcp"]


@pytest.mark.parametrize(("method", "path"), [("GET", None), ("HEAD", "files/file_1"), ("POST", "files?name=a.png")])
def test_other_methods_and_paths_are_redirected_alike_and_move_nothing(method: str, path: str | None) -> None:
    with FakeUpstream() as fake:
        first = method if path is None else f"{method} /files"
        fake.on[first] = moved("/elsewhere")
        fake.on["tools/list" if method == "POST" else method] = fakes.raw(200, "", b"")
        if path is None:
            fake.on[first] = fakes.in_turn(moved("/elsewhere"), fakes.raw(200, "", b""))
        transport = Transport(Config(url=fake.url))
        assert send(transport, MESSAGE if method == "POST" else b"", method=method, path=path).status_code == 200
        assert [call.path for call in fake.calls] == ["/mcp" if path is None else f"/{path}", "/elsewhere"]
        assert str(transport.url) == fake.url


def test_no_redirect_leads_to_another_origin_or_into_a_circle() -> None:
    with FakeUpstream() as fake, FakeUpstream() as other:
        transport = Transport(Config(url=fake.url, token="word", headers=(("X-Api-Key", "k"),)))
        elsewhere = (other.url, other.url.replace("http:", "https:"), f"//127.0.0.1:{other.port}/mcp")
        for place in (*elsewhere, localhost(fake), "ftp://127.0.0.1/mcp"):
            fake.on["tools/list"] = moved(place)
            assert send(transport).status_code == 307
        fake.on["tools/list"] = moved("/mcp", 302)  # would become a GET
        assert send(transport).status_code == 302
        seen = len(fake.calls)
        fake.on["tools/list"] = moved("/mcp")
        assert send(transport).status_code == 307 and len(fake.calls) == seen + 2
        assert other.calls == []


def test_a_try_after_a_restart_tells_the_worker_what_is_left_then(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeUpstream() as gone:
        pass
    with ExitStack() as stack:
        back, pause = FakeUpstream(gone.port), Exchange.pause

        def restarts(exchange: Exchange, seconds: float) -> None:
            pause(exchange, 0.2)
            stack.enter_context(back)

        monkeypatch.setattr(Exchange, "pause", restarts)
        assert send(Transport(Config(url=gone.url))).status_code == 200
        assert int(back.received("tools/list")[0].headers["sam2-mcp-budget-ms"]) <= 19_800


def test_what_a_server_writes_into_a_failure_stays_on_one_line() -> None:
    failure_ = Transport(Config()).failure("busy", detail="HTTP 503: a\nsam2-mcp: \x1b[31mb\u2028c")
    assert "(HTTP 503: a sam2-mcp: [31mb c)" in str(failure_) and str(failure_).isprintable()


def test_a_watched_exchange_has_no_timeout_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT_GRACE_S", 0.0)
    with FakeUpstream() as fake:
        fake.on["tools/list"] = fakes.after(0.3, fakes.result({"tools": []}))
        transport = Transport(Config(url=fake.url))
        exchange = Exchange(time.monotonic() + 0.1)
        exchange.watched = True
        assert b"tools" in read(transport, exchange)
        with pytest.raises(Failure, match="timeout"):
            read(transport, Exchange(time.monotonic() + 0.1))


def test_an_aborted_exchange_stays_aborted(authority: Authority) -> None:
    with FakeUpstream(tls=authority.server()) as fake:
        exchange = Exchange(time.monotonic() + 20)
        exchange.abort()
        with pytest.raises(Aborted):
            read(Transport(Config(url=fake.url, ca_file=str(authority.file))), exchange)
        assert fake.calls == []
