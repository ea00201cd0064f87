"""The worker's HTTP side on a real server: who gets in, uploads, artifacts, health."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.conftest import RunningWorker

from sam2_mcp_worker.app import create_app
from sam2_mcp_worker.settings import Settings

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
MCP_HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture
async def client(worker: RunningWorker) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=worker.base_url, headers=worker.headers, trust_env=False, timeout=30
    ) as client:
        yield client


@pytest.mark.parametrize("path", ["/mcp", "/files", "/version", "/artifacts/art_x"])
async def test_a_foreign_host_gets_421_everywhere(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.post(path, headers={"Host": "evil.test"}, json=INITIALIZE)
    assert answer.status_code == 421


async def test_a_foreign_origin_gets_403(client: httpx.AsyncClient) -> None:
    assert (await client.post("/mcp", headers={"Origin": "https://evil.test"}, json=INITIALIZE)).status_code == 403


async def test_without_the_token_everything_but_health_is_401(worker: RunningWorker) -> None:
    async with httpx.AsyncClient(base_url=worker.base_url, trust_env=False) as stranger:
        for path in ("/mcp", "/files", "/artifacts/art_x", "/version"):
            assert (await stranger.post(path, json=INITIALIZE)).status_code == 401
        assert (await stranger.get("/healthz")).json() == {"status": "alive"}
        assert (await stranger.get("/readyz")).json() == {"status": "ready"}


async def test_mcp_answers_with_the_token(client: httpx.AsyncClient) -> None:
    answer = await client.post("/mcp", headers=MCP_HEADERS, json=INITIALIZE)
    assert answer.status_code == 200
    assert '"name":"sam2-mcp"' in answer.text


async def test_a_request_above_the_cap_gets_413(client: httpx.AsyncClient) -> None:
    huge = INITIALIZE | {"params": {"padding": "x" * (5 * 1024 * 1024)}}
    assert (await client.post("/mcp", headers=MCP_HEADERS, json=huge)).status_code == 413


async def test_a_file_goes_in_and_is_known_by_its_handle(client: httpx.AsyncClient) -> None:
    answer = await client.post("/files?name=../../약관.pdf", content=b"%PDF-1.4 not really")
    assert answer.status_code == 201
    about = answer.json()
    assert about["name"] == "약관.pdf"
    known = await client.head(f"/files/{about['handle']}")
    assert known.status_code == 200 and known.content == b""
    assert known.headers["etag"] == f'"{about["sha256"]}"' and about["handle"] == f"file_{about['sha256'][:32]}"
    assert (await client.get(f"/files/{about['handle']}")).json() == about
    unknown = await client.head("/files/file_" + "0" * 32)
    assert unknown.status_code == 404
    limits = {answer.headers["sam2-mcp-max-upload-bytes"] for answer in (known, unknown)}
    assert limits == {str(64 * 1024 * 1024)}


async def test_an_upload_above_the_cap_gets_413_announced_or_not(client: httpx.AsyncClient) -> None:
    chunk = b"x" * (1024 * 1024)

    async def unannounced() -> AsyncIterator[bytes]:
        for _ in range(65):
            yield chunk

    announced = await client.post("/files", content=chunk * 65)
    assert announced.status_code == 413
    streamed = await client.post("/files", content=unannounced())
    assert streamed.status_code == 413
    assert streamed.json()["detail"]["code"] == "upload_too_large"


async def test_empty_and_multipart_uploads_say_what_to_do(client: httpx.AsyncClient) -> None:
    assert (await client.post("/files", content=b"")).json()["detail"]["code"] == "upload_empty"
    multipart = await client.post("/files", files={"file": b"abc"})
    assert multipart.status_code == 415
    assert "--data-binary" in multipart.json()["detail"]["message"]


async def test_what_is_declared_as_a_picture_must_begin_like_one_and_a_name_is_only_compared(
    client: httpx.AsyncClient,
) -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(30)

    async def by_byte() -> AsyncIterator[bytes]:
        for byte in png:
            yield bytes([byte])

    for content in (png, by_byte()):
        right = await client.post("/files?name=a.png", content=content, headers={"Content-Type": "image/png"})
        assert right.status_code == 201 and right.json()["media_type"] == "image/png" and "note" not in right.json()
    for content in (png, png[:5], b"<html>"):
        wrong = await client.post("/files?name=a.jpg", content=content, headers={"Content-Type": "image/jpeg"})
        assert wrong.status_code == 415 and wrong.json()["detail"]["code"] == "media_type_mismatch"
    misnamed = (await client.post("/files?name=a.jpg", content=png)).json()
    assert misnamed["note"] == "the name says image/jpeg, the bytes image/png; the bytes count"
    assert (await client.get(f"/files/{misnamed['handle']}")).json()["media_type"] == "image/png"
    broken = await client.post("/files?name=b.webp", content=b"text", headers={"Content-Type": "text/plain"})
    assert broken.json()["note"] == "the name says image/webp, the bytes do not; the bytes count"


# A limit on the size of files is the one full disk that every test machine can make.
UPLOAD_TO_A_FULL_DISK = """
import asyncio, json, resource, sys
from pathlib import Path
import httpx
from sam2_mcp_worker.app import create_app
from sam2_mcp_worker.settings import Settings

async def main(data_dir):
    app = create_app(Settings(data_dir=data_dir))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1") as client:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        full = await client.post("/files", content=b"x" * 300_000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (40, resource.RLIM_INFINITY))
        no_room_for_the_description = await client.post("/files", content=b"y" * 30)
        left = [path.name for path in data_dir.rglob("*") if path.is_file()]
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        fits = await client.post("/files", content=b"x" * 30_000)
    answers = [full, no_room_for_the_description, fits]
    print(json.dumps({"answers": [[answer.status_code, answer.json()] for answer in answers], "left": left}))

asyncio.run(main(Path(sys.argv[1])))
"""


def test_an_upload_to_a_full_disk_gets_507_and_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", UPLOAD_TO_A_FULL_DISK, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout)
    assert [status for status, _ in result["answers"]] == [507, 507, 201]
    assert result["answers"][0][1]["detail"]["code"] == "no_space"
    assert "SAM2_MCP_DATA_DIR" in result["answers"][0][1]["detail"]["message"]
    assert result["left"] == []


async def test_a_store_that_cannot_be_written_gets_500_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("a file where the folder should be", encoding="utf-8")
    transport = httpx.ASGITransport(create_app(Settings(data_dir=tmp_path)))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:1") as client:
        answer = await client.post("/files", content=b"abc")
    assert answer.status_code == 500
    assert answer.json()["detail"]["code"] == "storage_failed"


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_what_needs_a_session_gets_405_and_no_endless_stream(client: httpx.AsyncClient, method: str) -> None:
    answer = await client.request(method, "/mcp", headers=MCP_HEADERS)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"
    assert answer.json()["detail"]["code"] == "method_not_allowed"


async def test_an_upload_that_breaks_off_leaves_nothing_not_even_in_the_log(
    worker: RunningWorker, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = worker.base_url.removeprefix("http://").split(":")
    folder = worker.services.settings.data_dir / "files"

    async def parts(count: int) -> None:
        async with asyncio.timeout(10):
            while len(list(folder.glob(".*.part"))) != count:
                await asyncio.sleep(0.005)

    with socket.create_connection((host, int(port))) as raw:
        lines = ["POST /files HTTP/1.1", f"Host: {host}:{port}", f"Authorization: Bearer {worker.token}"]
        raw.sendall("\r\n".join([*lines, "Content-Length: 1000", "", "part"]).encode("ascii"))
        await parts(1)
    await parts(0)
    assert (await client.get("/readyz")).status_code == 200
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("handle", ["art_..%2f..%2fetc%2fpasswd", "..%2f..%2fetc", "art_" + "x" * 22])
async def test_no_path_leads_out_of_the_artifacts(client: httpx.AsyncClient, handle: str) -> None:
    assert (await client.get(f"/artifacts/{handle}")).status_code == 404


async def test_an_artifact_is_served_with_a_policy_that_runs_nothing(
    worker: RunningWorker, client: httpx.AsyncClient
) -> None:
    stored = worker.services.artifacts.put(b"<b>x</b>", name="보고서.html", mime_type="text/html")
    answer = await client.get(f"/artifacts/{stored.handle}")
    assert answer.content == b"<b>x</b>"
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_the_version_is_that_of_the_distribution(client: httpx.AsyncClient) -> None:
    from sam2_mcp_bridge import __version__

    assert (await client.get("/version")).json() == {"name": "sam2-mcp-worker", "version": __version__}
