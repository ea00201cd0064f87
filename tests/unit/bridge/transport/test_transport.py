"""Care of the connection: tokens, headers, redirects, time, on real sockets."""

import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.certificates import Authority
from tests.fakes.upstream import FakeUpstream
from tests.unit.bridge.transport.sending import MESSAGE, failure, localhost, read, send, status

from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.transport import transport as module
from sam2_mcp_bridge.transport.transport import Aborted, Exchange, Transport


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
    (tmp_path / "token").write_text("stale", encoding="utf-8")
    with FakeUpstream() as fake:
        transport = Transport(Config(url=fake.url, token="old", token_file=str(tmp_path / "token")))

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


def test_a_redirect_to_no_address_at_all_is_said() -> None:
    with FakeUpstream() as fake:
        fake.on["tools/list"] = moved("javascript:alert(1)")
        assert failure(Config(url=fake.url)).code == "redirected"


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


def test_the_server_is_told_how_the_host_is_treated_and_how_much_it_can_take() -> None:
    with FakeUpstream() as fake:
        transport = Transport(Config(url=fake.url, max_answer_bytes=70_000))
        send(transport)
        transport.profile = "full"
        send(transport)
        told = [call.headers["sam2-mcp-profile"] for call in fake.received("tools/list")]
        assert told == ["station; max-answer-bytes=70000", "full; max-answer-bytes=70000"]


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
