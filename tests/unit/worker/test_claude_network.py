"""The way to Claude: through a proxy, into nothing, and over a certificate that nobody vouches for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.fakes.certificates import Authority, refusing_client_certificates
from tests.fakes.claude_pages import make_page
from tests.fakes.claude_script import KEY
from tests.fakes.claude_server import FakeClaude, claude_server
from tests.fakes.loopback import closed_port
from tests.fakes.proxy import FakeProxy

from sam2_mcp_worker.cli.doctor_claude import claude_finding
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.claude import build_claude
from sam2_mcp_worker.engines.ports import Sight, TilePicture, Wanted
from sam2_mcp_worker.engines.vision_errors import VisionError
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.settings import Settings

PAGE = make_page("banner", 300, 200)
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeClaude]:
    with claude_server([PAGE]) as server:
        yield server


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> TilePicture:
    return TilePicture(PAGE.write(tmp_path_factory.mktemp("pictures")), "image/png", 300, 200)


@pytest.fixture(autouse=True)
def no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def look(picture: TilePicture, folder: Path, base_url: str) -> Sight:
    vision = build_claude(Settings(data_dir=folder, anthropic_api_key=KEY, anthropic_base_url=base_url))
    try:
        return await vision.look(picture, Wanted(text=True), model="fast", deadline=Deadline.after(20))
    finally:
        await vision.close()


async def refused(picture: TilePicture, folder: Path, base_url: str) -> str:
    with pytest.raises(VisionError) as caught:
        await look(picture, folder, base_url)
    assert caught.value.kind == "unreachable"
    assert caught.value.local_reads_on
    assert "proxy and ANTHROPIC_BASE_URL" in caught.value.next_step
    return caught.value.public_text


async def test_a_proxy_of_the_environment_is_used_and_resolves_the_name(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeProxy(hosts={"claude.test": "127.0.0.1"}, credentials="me:secret") as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@{proxy.address}")
        address = f"http://claude.test:{fake.port}"
        sight = await look(picture, tmp_path, address)
        told = await claude_finding(Settings(data_dir=tmp_path, anthropic_api_key=KEY, anthropic_base_url=address))
    assert len(sight.lines) == len(PAGE.lines)
    assert urlsplit(proxy.requests[0].target).hostname == "claude.test"
    assert f"claude.test through the proxy {proxy.address}" in told
    assert "secret" not in told


async def test_a_proxy_that_wants_a_password_is_named(
    fake: FakeClaude, picture: TilePicture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeProxy(credentials="me:secret") as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        assert "proxy" in await refused(picture, tmp_path, f"http://claude.test:{fake.port}")
        assert "the proxy refused it" in await refused(picture, tmp_path, "https://claude.test")


async def test_a_proxy_that_is_down_is_no_connection(
    picture: TilePicture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{closed_port()}")
    assert "refused" in await refused(picture, tmp_path, "https://claude.test")


async def test_a_port_where_nobody_listens_is_no_connection(picture: TilePicture, tmp_path: Path) -> None:
    assert "refused" in await refused(picture, tmp_path, f"http://127.0.0.1:{closed_port()}")


async def test_a_name_that_nobody_knows_is_named_as_such(picture: TilePicture, tmp_path: Path) -> None:
    assert "name cannot be resolved" in await refused(picture, tmp_path, "http://claude.invalid")


async def test_a_certificate_that_nobody_vouches_for_is_named_as_such(
    picture: TilePicture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path / "ca")
    with refusing_client_certificates(authority.server()) as url:
        address = url.removesuffix("/mcp")
        assert "certificate is not trusted" in await refused(picture, tmp_path, address)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))  # vouched for, but it is no Messages API
        assert "broke off" in await refused(picture, tmp_path, address)


async def test_doctor_tells_the_state_of_claude_and_spends_nothing(fake: FakeClaude, tmp_path: Path) -> None:
    def settings(**changes: str) -> Settings:
        return Settings(data_dir=tmp_path, **(fake.settings() | changes))

    fake.requests.clear()
    told = await claude_finding(settings())
    assert "pictures go to 127.0.0.1; claude-haiku-5-5 verified; claude-sonnet-5-5 verified; 0.0000 of 10.00" in told
    assert (await claude_finding(Settings(data_dir=tmp_path))).startswith("off: [not_available]")
    assert (await claude_finding(settings(vision="off"))).startswith("off: [not_available]")
    for changes, code in (
        ({"anthropic_api_key": "sk-wrong"}, "vision_auth"),
        ({"anthropic_api_key": "sk wrong"}, "vision_auth"),
        ({"claude_accurate_model": "claude-none"}, "vision_model"),
        ({"claude_daily_cap_usd": "0"}, "vision_cap"),
        ({"anthropic_base_url": f"http://127.0.0.1:{closed_port()}"}, "vision_unreachable"),
    ):
        with pytest.raises(WorkerError) as caught:
            await claude_finding(settings(**changes))
        assert caught.value.code == code
    assert fake.requests == []
