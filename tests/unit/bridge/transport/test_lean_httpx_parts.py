"""The stand-ins one by one, in this process: for each test httpx and what is stood in for are as never imported."""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from sam2_mcp_bridge.transport import lean_httpx
from sam2_mcp_bridge.transport.lean_httpx import PLAIN, _StandIn

OF_HTTPX = ("httpx", "httpcore", "h11")
PARENTS = ("email", "http", "urllib")


def touched(name: str) -> bool:
    return name in lean_httpx._LATER or name in lean_httpx._ABSENT or name.partition(".")[0] in OF_HTTPX


@pytest.fixture(autouse=True)
def as_never_imported() -> Iterator[None]:
    before = {name: module for name, module in sys.modules.items() if touched(name)}
    submodules = {parent: dict(vars(sys.modules[parent])) for parent in PARENTS if parent in sys.modules}
    for name in before:
        del sys.modules[name]
    yield
    for name in [name for name in sys.modules if touched(name)]:
        del sys.modules[name]
    sys.modules.update(before)
    for parent, attributes in submodules.items():
        vars(sys.modules[parent]).update(attributes)


def stand_ins() -> set[str]:
    return {name for name, module in sys.modules.items() if isinstance(module, _StandIn)}


def client(httpx: Any, server: Any) -> Any:
    return httpx.Client(transport=httpx.MockTransport(server), trust_env=False, verify=PLAIN)


def test_httpx_is_imported_once_with_stand_ins() -> None:
    httpx = lean_httpx.httpx
    assert lean_httpx.httpx is httpx is sys.modules["httpx"]
    assert stand_ins() == lean_httpx._LATER.keys() - {"urllib.request", "http.cookiejar"} - loaded_by_this_httpx()
    assert None not in sys.modules.values()
    with pytest.raises(AttributeError, match="requests"):
        _ = lean_httpx.requests  # type: ignore[attr-defined]


def loaded_by_this_httpx() -> set[str]:
    """Whatever the version at hand needs; the test of the whole process says what it may be."""
    return {name for name in lean_httpx._LATER if name in sys.modules} - stand_ins()


def test_stand_ins_are_placed_once_and_not_beside_an_httpx_that_is_there() -> None:
    lean_httpx.place_stand_ins()
    first = sys.modules["ssl"]
    lean_httpx.place_stand_ins()
    assert sys.modules["ssl"] is first
    import email.message

    assert email.message is sys.modules["email.message"] and isinstance(email.message, _StandIn)
    for name in stand_ins():
        lean_httpx._remove(name)
    assert not hasattr(email, "message")
    sys.modules["httpx"] = ModuleType("httpx")
    lean_httpx.place_stand_ins()
    assert not stand_ins()


def test_a_stand_in_passes_everything_on_once_it_is_used() -> None:
    lean_httpx.place_stand_ins()
    import ssl

    bound_early = ssl.SSLContext
    assert not isinstance(object(), ssl.SSLContext) and isinstance(ssl, _StandIn)
    with pytest.raises(AttributeError):
        _ = ssl.__path__
    context = bound_early(ssl.PROTOCOL_TLS_CLIENT)
    assert isinstance(context, ssl.SSLContext) and not isinstance(sys.modules["ssl"], _StandIn)
    assert ssl.SSLSocket is sys.modules["ssl"].SSLSocket


def test_cookies_go_through_the_real_jar_from_the_first_one_on() -> None:
    httpx = lean_httpx.httpx
    seen: list[str | None] = []

    def server(request: Any) -> Any:
        seen.append(request.headers.get("cookie"))
        return httpx.Response(200, headers={"set-cookie": "a=b; Path=/"} if len(seen) == 2 else {})

    with client(httpx, server) as to:
        for _ in range(4):
            assert "http.cookiejar" not in sys.modules or len(seen) >= 2
            to.get("http://localhost/")
        assert dict(to.cookies) == {"a": "b"}
        to.cookies.clear()
        to.get("http://localhost/")
    assert seen == [None, None, "a=b", "a=b", None]


def test_digest_authentication_parses_and_hashes() -> None:
    httpx = lean_httpx.httpx

    def server(request: Any) -> Any:
        given = request.headers.get("authorization")
        challenge = {"www-authenticate": 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'}
        return httpx.Response(200, text=given) if given else httpx.Response(401, headers=challenge)

    with client(httpx, server) as to:
        assert to.get("http://localhost/", auth=httpx.DigestAuth("u", "p")).text.startswith('Digest username="u"')


def test_inspect_answers_for_dataclasses_and_traces_by_itself() -> None:
    lean_httpx.place_stand_ins()
    import inspect

    @dataclass
    class Point:
        x: int

    async def coroutine() -> None: ...

    waiting = coroutine()
    assert [inspect.iscoroutine(waiting), inspect.iscoroutine(coroutine)] == [True, False]
    waiting.close()
    assert [inspect.isgenerator(value for value in ()), inspect.isgenerator(())] == [True, False]
    assert inspect.signature(Point) == "()"  # type: ignore[comparison-overlap]
    if sys.version_info < (3, 14):
        assert inspect.get_annotations(Point) == {"x": int}
        assert isinstance(sys.modules["inspect"], _StandIn)
    annotations = inspect.get_annotations
    assert str(inspect.signature(touched)) == "(name: str) -> bool"
    assert annotations(touched) == {"name": str, "return": bool}
    assert not isinstance(sys.modules["inspect"], _StandIn)


def test_only_the_synchronous_half_is_promised() -> None:
    httpx = lean_httpx.httpx

    async def call() -> None:
        async with httpx.AsyncClient(trust_env=False, verify=PLAIN) as to:
            await to.get("http://127.0.0.1:9/")

    with pytest.raises(RuntimeError, match="asyncio"):
        asyncio.run(call())


def test_what_was_imported_in_the_meantime_stays() -> None:
    with lean_httpx._optional_parts_absent():
        assert sys.modules["h2"] is None  # type: ignore[comparison-overlap]
        sys.modules["h2"] = found = ModuleType("h2")
    assert sys.modules["h2"] is found and "anyio" not in sys.modules


def test_where_the_proof_fails_httpx_is_imported_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Any] = []
    monkeypatch.setattr(lean_httpx, "_prove", lambda module: used.append(module) or 1 / 0)
    httpx = lean_httpx.httpx
    assert httpx is sys.modules["httpx"] and [httpx] != used
    assert not stand_ins()
    with client(httpx, lambda request: httpx.Response(200, headers={"set-cookie": "a=b"})) as to:
        to.get("http://localhost/")
        assert dict(to.cookies) == {"a": "b"}
