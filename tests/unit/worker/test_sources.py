"""Sources: handles, paths below the roots, https of allowed hosts. Everything else is refused."""

import asyncio
import base64
import os
import shutil
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trustme
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from sam2_mcp_worker.artifacts import INSPECTED, Artifacts
from sam2_mcp_worker.deadline import Deadline, deadline_scope
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fetch import Fetcher, is_public_address
from sam2_mcp_worker.sources import Sources
from sam2_mcp_worker.uploads import Uploads


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path / "files", max_bytes=1000, retention_h=24)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "allowed"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.pdf").write_bytes(b"content a")
    (tmp_path / "secret.txt").write_bytes(b"secret")
    return root


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    with deadline_scope(Deadline.after(20)):
        yield


def artifacts_beside(uploads: Uploads) -> Artifacts:
    return Artifacts(uploads._root.parent / "artifacts", retention_h=1.0)


def sources_of(uploads: Uploads, *roots: Path, fetcher: Fetcher | None = None) -> Sources:
    return Sources(uploads, artifacts_beside(uploads), tuple(map(str, roots)), fetcher or Fetcher(()))


async def test_paths_below_a_root_are_taken_in_absolute_and_relative(uploads: Uploads, root: Path) -> None:
    sources = sources_of(uploads, root)
    for source in (str(root / "sub" / "a.pdf"), "sub/a.pdf", " sub/../sub/a.pdf "):
        stored = await sources.resolve(source)
        assert stored.path.read_bytes() == b"content a"
        assert stored.name == "a.pdf"
    assert await sources.resolve(stored.handle) == stored


async def test_an_artifact_is_taken_in_and_one_about_an_inspected_file_stands_for_that_file(
    uploads: Uploads, root: Path
) -> None:
    sources, artifacts = sources_of(uploads, root), artifacts_beside(uploads)
    inspected = await sources.resolve("sub/a.pdf")
    redacted = artifacts.put(b"%PDF-1.7 redacted", name="a-redacted.pdf", mime_type="application/pdf")
    report = artifacts.put(b"<html>", name="a.html", mime_type="text/html", facts={INSPECTED: inspected.handle})
    for source in (redacted.uri, redacted.handle, f" {redacted.uri} "):
        stored = await sources.resolve(source)
        assert (stored.name, stored.path.read_bytes()) == ("a-redacted.pdf", b"%PDF-1.7 redacted")
    assert await sources.resolve(report.uri) == inspected
    with pytest.raises(WorkerError, match="artifact_unknown"):
        await sources.resolve(artifacts.new_handle())
    shutil.rmtree(inspected.path.parent)
    with pytest.raises(WorkerError, match="file_unknown"):
        await sources.resolve(report.uri)


async def test_a_file_that_changed_is_read_again_and_one_that_was_swept_too(uploads: Uploads, root: Path) -> None:
    sources = sources_of(uploads, root)
    before = await sources.resolve("sub/a.pdf")
    (root / "sub" / "a.pdf").write_bytes(b"content b!")
    after = await sources.resolve("sub/a.pdf")
    assert (before.path.read_bytes(), after.path.read_bytes()) == (b"content a", b"content b!")
    (after.path.parent / "about.json").unlink()
    assert (await sources.resolve("sub/a.pdf")).path.read_bytes() == b"content b!"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("data:image/png;base64,iVBORw0KGgo=", "a data: URI (image/png) of 34 characters"),
        ("DATA:,x", "a data: URI (no type)"),
        (base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(80)).decode(), "the Base64 text of a file (image/png)"),
        (base64.b64encode(b"\xff\xd8\xff\xe0" + b"\xff" * 9000).decode(), "the Base64 text of a file (image/jpeg)"),
        (base64.urlsafe_b64encode(b"%PDF-1.7" + b"\xff" * 90).decode(), "the Base64 text of a file (application/pdf)"),
        (base64.b64encode(b"PK\x03\x04" + bytes(90)).decode(), "the Base64 text of a file (application/zip)"),
        (base64.encodebytes(b"RIFF....WAVE" + bytes(90)).decode(), "the Base64 text of a file (audio/wav)"),
    ],
)
async def test_a_pasted_file_is_known_and_told_where_to_go(
    uploads: Uploads, root: Path, source: str, kind: str
) -> None:
    with pytest.raises(WorkerError, match="POST /files") as caught:
        await sources_of(uploads, root).resolve(source)
    assert caught.value.code == "source_is_content" and kind in str(caught.value)
    assert len(str(caught.value)) < 500 and source[-12:] not in str(caught.value)


async def test_a_long_path_is_no_pasted_file(uploads: Uploads, root: Path) -> None:
    with pytest.raises(WorkerError) as caught:
        await sources_of(uploads, root).resolve("/" + "a" * 200)
    assert caught.value.code == "source_not_allowed"


@pytest.mark.parametrize(
    "source",
    [
        "../secret.txt",
        "sub/../../secret.txt",
        "/etc/passwd",
        "link-out",
        "link-dir/secret.txt",
        "~/x",
        "sub/a.pdf/../../../secret.txt",
    ],
)
async def test_nothing_outside_the_roots_is_read(uploads: Uploads, root: Path, tmp_path: Path, source: str) -> None:
    (root / "link-out").symlink_to(tmp_path / "secret.txt")
    (root / "link-dir").symlink_to(tmp_path)
    with pytest.raises(WorkerError) as caught:
        await sources_of(uploads, root).resolve(source)
    assert caught.value.code in ("source_not_allowed", "source_not_found")
    assert str(tmp_path) not in caught.value.public_text


async def test_a_link_that_stays_inside_is_fine(uploads: Uploads, root: Path) -> None:
    (root / "link-in").symlink_to(root / "sub" / "a.pdf")
    assert (await sources_of(uploads, root).resolve("link-in")).path.read_bytes() == b"content a"


async def test_a_relative_path_is_found_in_the_first_root_that_has_it(
    uploads: Uploads, root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / "sub").mkdir(parents=True)
    (other / "sub" / "a.pdf").write_bytes(b"content of the other")
    (other / "only.pdf").write_bytes(b"only here")
    (root / "out.pdf").symlink_to(tmp_path / "secret.txt")
    (other / "out.pdf").write_bytes(b"inside")
    sources = sources_of(uploads, root, other)
    read = [(await sources.resolve(path)).path.read_bytes() for path in ("sub/a.pdf", "only.pdf", "out.pdf")]
    assert read == [b"content a", b"only here", b"inside"]
    with pytest.raises(WorkerError) as caught:
        await sources.resolve("nowhere.pdf")
    assert caught.value.code == "source_not_found"


async def test_paths_that_lead_nowhere_are_not_found(uploads: Uploads, root: Path) -> None:
    (root / "round").symlink_to(root / "about")
    (root / "about").symlink_to(root / "round")
    (root / "broken").symlink_to(root / "gone")
    for source in ("round", str(root / "round"), "round/a.pdf", "broken", "x" * 300, "\ud800.pdf", "sub/a.pdf/b"):
        with pytest.raises(WorkerError, match="check the path") as caught:
            await sources_of(uploads, root).resolve(source)
        assert caught.value.code == "source_not_found"
        assert str(root) not in caught.value.public_text


async def test_without_roots_no_path_is_read(uploads: Uploads, root: Path) -> None:
    for source in (str(root / "sub" / "a.pdf"), "sub/a.pdf"):
        with pytest.raises(WorkerError, match="SAM2_MCP_ALLOWED_ROOTS"):
            await sources_of(uploads).resolve(source)


async def test_devices_pipes_and_folders_are_no_sources(uploads: Uploads, root: Path) -> None:
    os.mkfifo(root / "pipe")
    sources = sources_of(uploads, root)
    for source in ("pipe", "sub", "missing.pdf"):
        with pytest.raises(WorkerError) as caught:
            await asyncio.wait_for(sources.resolve(source), 5)
        assert caught.value.code in ("source_invalid", "source_not_found")


@pytest.mark.parametrize("source", ["", "   ", "x" * 5000, "a\0b", "file:///etc/passwd", "FILE:///etc/passwd"])
async def test_what_is_no_source_says_what_one_is(uploads: Uploads, root: Path, source: str) -> None:
    with pytest.raises(WorkerError, match="handle file_") as caught:
        await sources_of(uploads, root).resolve(source)
    assert caught.value.code == "source_invalid"


async def test_a_file_above_the_limit_is_refused(uploads: Uploads, root: Path) -> None:
    (root / "big").write_bytes(b"x" * 1001)
    with pytest.raises(WorkerError, match="1000"):
        await sources_of(uploads, root).resolve("big")


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("172.16.5.4", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:8.8.8.8", True),
    ],
)
def test_only_global_addresses_are_public(address: str, public: bool) -> None:
    assert is_public_address(address) is public


@pytest.mark.parametrize(
    "url",
    [
        "http://allowed.test/x",
        "https://other.test/x",
        "https://169.254.169.254/latest/meta-data",
        "https://user:pw@allowed.test/x",
        "ftp://allowed.test/x",
        "https://allowed.test:8443/x",
        "https://[::1/x",
        "https://allowed.test.evil.test/x",
        "gopher://allowed.test",
        "https://allowed.test:99999/x",
    ],
)
async def test_urls_beyond_https_of_allowed_hosts_are_refused(uploads: Uploads, url: str) -> None:
    with pytest.raises(WorkerError) as caught:
        await sources_of(uploads, fetcher=Fetcher(("allowed.test",))).resolve(url)
    assert caught.value.code == "url_refused"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "169.254.169.254"])
async def test_an_allowed_name_that_leads_to_a_private_address_is_refused(uploads: Uploads, host: str) -> None:
    with pytest.raises(WorkerError, match="not public"):
        await sources_of(uploads, fetcher=Fetcher((host,))).resolve(f"https://{host}/x")


async def test_a_name_that_does_not_resolve_is_unreachable(uploads: Uploads) -> None:
    with pytest.raises(WorkerError, match="resolved"):
        await sources_of(uploads, fetcher=Fetcher(("no-such-host.invalid",))).resolve("https://no-such-host.invalid/x")


async def drip() -> AsyncIterator[bytes]:
    yield b"first"
    await asyncio.Event().wait()


def answer(request: Request) -> Response:
    match request.url.path:
        case "/leaflet.pdf":
            return PlainTextResponse(f"host={request.headers['host'].split(':')[0]}")
        case "/moved":
            return RedirectResponse("https://elsewhere.test/")
        case "/big":
            return PlainTextResponse("x" * 2000)
        case "/drip":
            return StreamingResponse(drip())
    return PlainTextResponse("no", status_code=404)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[tuple[str, Fetcher]]:
    """A real TLS server on loopback, and a fetcher that may reach loopback."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    pem = tmp_path / "server.pem"
    certificate.private_key_and_cert_chain_pem.write_to_path(pem)
    app = Starlette(routes=[Route("/{path:path}", answer)])
    config = uvicorn.Config(app, port=0, ssl_certfile=str(pem), log_config=None, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    fetcher = Fetcher((f"localhost:{port}",), address_allowed=lambda _: True, ssl_context=trust)
    yield f"https://localhost:{port}", fetcher
    server.should_exit = True
    await task


async def test_an_allowed_https_url_is_fetched_under_its_own_name(uploads: Uploads, site: tuple[str, Fetcher]) -> None:
    base, fetcher = site
    stored = await sources_of(uploads, fetcher=fetcher).resolve(f"{base}/leaflet.pdf?x=1")
    assert stored.path.read_bytes() == b"host=localhost"
    assert stored.name == "leaflet.pdf"


@pytest.mark.parametrize(
    ("path", "code"), [("/moved", "url_status"), ("/none", "url_status"), ("/big", "upload_too_large")]
)
async def test_redirects_errors_and_large_bodies_are_refused(
    uploads: Uploads, site: tuple[str, Fetcher], path: str, code: str
) -> None:
    base, fetcher = site
    with pytest.raises(WorkerError) as caught:
        await sources_of(uploads, fetcher=fetcher).resolve(base + path)
    assert caught.value.code == code


async def test_a_host_that_drips_is_left_at_the_deadline(
    uploads: Uploads, site: tuple[str, Fetcher], tmp_path: Path
) -> None:
    base, fetcher = site
    with deadline_scope(Deadline.after(0.5)), pytest.raises(WorkerError, match="in time") as caught:
        await sources_of(uploads, fetcher=fetcher).resolve(f"{base}/drip")
    assert caught.value.code == "deadline"
    assert not list((tmp_path / "files").glob(".*.part"))


async def test_a_certificate_of_nobody_is_refused(uploads: Uploads, site: tuple[str, Fetcher]) -> None:
    base, _ = site
    stranger = Fetcher((base.removeprefix("https://"),), address_allowed=lambda _: True)
    with pytest.raises(WorkerError) as caught:
        await sources_of(uploads, fetcher=stranger).resolve(f"{base}/leaflet.pdf")
    assert caught.value.code == "url_unreachable"
