"""Care of the connection: proxies, on real sockets."""

import math
import threading
import time
from contextlib import nullcontext
from typing import Any

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.certificates import Authority
from tests.fakes.proxy import FakeProxy
from tests.fakes.upstream import FakeUpstream
from tests.unit.bridge.transport.sending import failure, read, send, setup_error, status

from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.transport import transport as module
from sam2_mcp_bridge.transport.transport import Exchange, Transport


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
