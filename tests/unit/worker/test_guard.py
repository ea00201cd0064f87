"""The door: who gets in and who does not."""

import httpx
import pytest

from sam2_mcp_worker.web.guard import Guard, Receive, Scope, Send, matches

HOSTS = ("127.0.0.1:*", "localhost", "localhost:*", "worker:8765")
ORIGINS = ("http://localhost:*", "https://console.test")


async def inner(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"in"})


async def ask(headers: dict[str, str], *, token: str | None = None, path: str = "/mcp") -> httpx.Response:
    guard = Guard(inner, allowed_hosts=HOSTS, allowed_origins=ORIGINS, token=token)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard)) as client:
        return await client.get(f"http://localhost{path}", headers=headers)


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost", "LOCALHOST:1", "worker:8765"])
async def test_known_hosts_get_in(host: str) -> None:
    assert (await ask({"host": host})).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.test", "worker", "worker:1", "localhost:", "localhost:80.evil.test", "127.0.0.1.evil.test:80"]
)
async def test_a_foreign_host_gets_421_and_the_setting_to_change(host: str) -> None:
    answer = await ask({"host": host})
    assert answer.status_code == 421
    assert "SAM2_MCP_ALLOWED_HOSTS" in answer.json()["error"]["message"]


async def test_a_foreign_origin_gets_403_and_a_known_one_gets_in() -> None:
    assert (await ask({"host": "localhost", "origin": "https://evil.test"})).status_code == 403
    assert (await ask({"host": "localhost", "origin": "null"})).status_code == 403
    assert (await ask({"host": "localhost", "origin": "https://console.test"})).status_code == 200
    assert (await ask({"host": "localhost", "origin": "http://localhost:3000"})).status_code == 200


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (None, 401),
        ("Bearer wrong", 401),
        ("Basic s3cret", 401),
        ("Bearer", 401),
        ("s3cret", 401),
        ("Bearer s3cret", 200),
        ("bearer  s3cret", 200),
    ],
)
async def test_without_the_token_nobody_gets_in(header: str | None, status: int) -> None:
    headers = {"host": "localhost"} | ({"authorization": header} if header else {})
    answer = await ask(headers, token="s3cret")
    assert answer.status_code == status
    assert "s3cret" not in answer.text
    assert ("www-authenticate" in answer.headers) is (status == 401)


async def test_probes_need_neither_host_nor_token() -> None:
    for path in ("/healthz", "/readyz"):
        assert (await ask({"host": "10.1.2.3:8765"}, token="s3cret", path=path)).status_code == 200


async def test_what_is_not_http_passes() -> None:
    seen = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    async def never() -> None:
        raise AssertionError

    await Guard(app, allowed_hosts=(), allowed_origins=(), token="t")({"type": "lifespan"}, never, never)  # type: ignore[arg-type]
    assert seen == ["lifespan"]


def test_a_wildcard_is_a_port_and_nothing_else() -> None:
    assert matches("a:1", ["a:*"])
    assert not matches("a:", ["a:*"])
    assert not matches("a:1x", ["a:*"])
    assert not matches("ab:1", ["a:*"])
    assert not matches("", [])
