"""Shared files from end to end: the real bridge program, the real worker, real pictures and files of real size."""

import hashlib
import json
import os
import queue
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from deploy.station import loader
from deploy.station.minimal_station.contract import Timings
from PIL import Image, ImageDraw, ImageFont
from tests.conftest import RunningWorker, serving
from tests.unit.bridge.files.test_shares import again_and_again
from tests.unit.bridge.mcp_host import PATIENCE_S, Program, program_host
from tests.unit.station.harness import StationClient, running_station

from sam2_mcp_bridge.files.uploads import META_KEY
from sam2_mcp_worker.settings import Settings

TOKEN = "test-token"
GIB = 2**30


@pytest.fixture
def share(tmp_path: Path) -> Path:
    folder = tmp_path / "공유 폴더"
    folder.mkdir()
    return folder


@pytest.fixture
def host(worker: RunningWorker, share: Path) -> Iterator[Program]:
    with sharing(worker, share) as host:
        host.initialize()
        yield host


@pytest.fixture(scope="module")
def roomy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    """A worker that takes large files."""
    settings = Settings(
        port=0,
        token=TOKEN,  # type: ignore[arg-type]
        data_dir=tmp_path_factory.mktemp("roomy"),
        max_upload_bytes=4 * GIB,
    )
    yield from serving(settings)


def sharing(worker: RunningWorker, share: Path, *flags: str) -> Any:
    return program_host(f"{worker.base_url}/mcp", "--share", str(share), *flags, SAM2_MCP_TOKEN=TOKEN)


def picture(path: Path, words: str) -> Path:
    image = Image.new("RGB", (420, 120), "white")
    ImageDraw.Draw(image).text((40, 30), words, font=ImageFont.load_default(size=40), fill="black")
    image.save(path)
    return path


def sparse(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


def facts(result: dict[str, Any]) -> dict[str, Any]:
    assert not result.get("isError"), result
    value = json.loads(result["content"][0]["text"])
    assert isinstance(value, dict)
    return value


def words(result: dict[str, Any]) -> str:
    return "".join(line["text"] for line in facts(result)["lines"]).replace(" ", "")


def entries(result: dict[str, Any]) -> list[dict[str, Any]]:
    found = result["_meta"][META_KEY]
    assert isinstance(found, list)
    return found


def parts(worker: RunningWorker) -> list[Path]:
    """Uploads under way on the worker."""
    return list(_folder(worker).glob(".*.part"))


def stored(worker: RunningWorker) -> set[str]:
    return {path.name for path in _folder(worker).glob("file_*")}


def _folder(worker: RunningWorker) -> Path:
    return worker.services.settings.data_dir / "files"


def wait_until(condition: Callable[[], object]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.005)


def test_a_picture_of_the_hosts_machine_is_read_by_its_path(host: Program, worker: RunningWorker, share: Path) -> None:
    path = picture(share / "그림 1%2e.png", "HELLO 4711")
    first = host.call("read_text", source=str(path))
    again = host.call("read_text", source=path.as_uri())
    assert "4711" in words(first) and words(first) == words(again)
    assert facts(first)["file"] == path.name
    content = path.read_bytes()
    about = {"argument": "/source", "name": path.name, "size_bytes": len(content)}
    sha256 = hashlib.sha256(content).hexdigest()
    about |= {"handle": f"file_{sha256[:32]}", "sha256": sha256}
    assert entries(first) == [about | {"uploaded": True}]
    assert entries(again) == [about | {"uploaded": False}]


def test_a_picture_that_changed_is_read_anew(host: Program, share: Path) -> None:
    path = share / "picture.png"
    assert "111" in words(host.call("read_text", source=str(picture(path, "111"))))
    assert "222" in words(host.call("read_text", source=str(picture(path, "222"))))


def test_without_a_share_and_outside_it_the_worker_has_the_word(
    host: Program, worker: RunningWorker, share: Path
) -> None:
    outside = picture(share.parent / "outside.png", "SECRET")
    (share / "link.png").symlink_to(outside)
    before = stored(worker)
    assert host.failing_call("read_text", source=str(outside)).startswith("[source_not_allowed] ")
    assert host.failing_call("read_text", source=f"{share}/../outside.png").startswith("[source_not_allowed] ")
    assert "leads out" in host.failing_call("read_text", source=str(share / "link.png"))
    with program_host(f"{worker.base_url}/mcp", SAM2_MCP_TOKEN=TOKEN) as plain:
        plain.initialize()
        path = picture(share / "inside.png", "INSIDE")
        assert plain.failing_call("read_text", source=str(path)).startswith("[source_not_allowed] ")
    assert stored(worker) == before


def test_a_file_above_the_workers_limit_names_the_limit(host: Program, worker: RunningWorker, share: Path) -> None:
    limit = worker.services.settings.max_upload_bytes
    text = host.failing_call("read_text", source=str(sparse(share / "large.pdf", limit + 1)))
    assert text.startswith("[file_too_large] ") and f"at most {limit}" in text and "SAM2_MCP_MAX_UPLOAD_BYTES" in text


def test_a_wrong_token_is_named_and_nothing_is_sent(worker: RunningWorker, share: Path) -> None:
    path = picture(share / "token.png", "TOKEN")
    before = stored(worker)
    with program_host(f"{worker.base_url}/mcp", "--share", str(share), SAM2_MCP_TOKEN="wrong") as host:
        host.initialize()
        assert host.failing_call("read_text", source=str(path)).startswith("[unauthorized] ")
    assert stored(worker) == before


def test_parallel_sessions_with_the_same_file_each_get_their_answer(worker: RunningWorker, share: Path) -> None:
    """Nothing joins processes: whoever comes second finds the file known, or both send it; the worker keeps one."""
    path = picture(share / "same.png", "PARALLEL 8")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()

    def session(_: int) -> dict[str, Any]:
        with sharing(worker, share) as host:
            host.initialize()
            return host.call("read_text", source=str(path))

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(session, range(4)))
    assert {entries(result)[0]["sha256"] for result in results} == {digest}
    assert len({words(result) for result in results}) == 1 and "8" in words(results[0])
    assert (_folder(worker) / f"file_{digest[:32]}" / "data").read_bytes() == path.read_bytes()
    assert parts(worker) == []


def test_eight_parallel_calls_of_one_session_cost_one_upload(worker: RunningWorker, share: Path) -> None:
    path = picture(share / "eight.png", "EIGHT 8")
    with sharing(worker, share, "--profile", "full") as host:
        host.initialize()
        for number in range(8):
            host.send("tools/call", {"name": "read_text", "arguments": {"source": str(path)}}, id=100 + number)
        answers = {}
        while len(answers) < 8:
            answer = host.answer()
            answers |= {answer["id"]: answer["result"]} if "id" in answer else {}
    assert sorted(answers) == list(range(100, 108))
    assert sum(entries(result)[0]["uploaded"] for result in answers.values()) == 1
    assert len({words(result) for result in answers.values()}) == 1


def test_a_bridge_killed_in_the_middle_of_an_upload_leaves_nothing_behind(roomy: RunningWorker, share: Path) -> None:
    before = stored(roomy)
    with sharing(roomy, share) as host:
        host.initialize()
        arguments = {"source": str(sparse(share / "large.pdf", GIB // 2))}
        host.send("tools/call", {"name": "read_text", "arguments": arguments}, id=9)
        wait_until(lambda: parts(roomy))
        host.process.send_signal(signal.SIGKILL)
        host.exit_code()
    wait_until(lambda: not parts(roomy))
    assert stored(roomy) == before


def test_a_cancelled_upload_leaves_nothing_behind_and_the_session_goes_on(roomy: RunningWorker, share: Path) -> None:
    before = stored(roomy)
    path = sparse(share / "large.pdf", GIB // 2)
    with sharing(roomy, share) as host:
        host.initialize()
        host.send("tools/call", {"name": "read_text", "arguments": {"source": str(path)}}, id=9)
        wait_until(lambda: parts(roomy))
        host.send("notifications/cancelled", {"requestId": 9})
        wait_until(lambda: not parts(roomy))
        assert stored(roomy) == before
        assert "77" in words(host.call("read_text", source=str(picture(share / "small.png", "AFTER 77"))))


def test_a_deadline_in_the_middle_of_it_all_is_kept(roomy: RunningWorker, share: Path) -> None:
    path = sparse(share / "huge.pdf", 64 * GIB)  # minutes of hashing
    with sharing(roomy, share, "--deadline", "1.5") as host:
        host.initialize()
        assert host.failing_call("read_text", source=str(path)).startswith("[deadline] ")
        assert "78" in words(host.call("read_text", source=str(picture(share / "small.png", "AFTER 78"))))
    assert parts(roomy) == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_file_of_a_gigabyte_passes_in_constant_memory(roomy: RunningWorker, share: Path) -> None:
    path = sparse(share / "film.pdf", GIB)
    os.utime(path, (10**9, 10**9))
    with sharing(roomy, share, "--profile", "full", "--deadline", "120") as host:  # machines are shared
        host.initialize()
        host.call("read_text", source=str(picture(share / "small.png", "SMALL")))
        before_kib = _peak_kib(host)
        for number, uploaded in enumerate((True, False)):
            host.send("tools/call", {"name": "read_text", "arguments": {"source": str(path)}}, id=900 + number)
            result = _late_answer(host)["result"]  # no picture, as the worker finds out
            (entry,) = entries(result)
            assert (entry["size_bytes"], entry["uploaded"], result["isError"]) == (GIB, uploaded, True)
        assert entry["handle"] in stored(roomy)
        assert _peak_kib(host) - before_kib < 4 * 1024


def _late_answer(host: Program) -> dict[str, Any]:
    for _ in range(4):
        with suppress(queue.Empty):
            return host.answer()
    raise AssertionError("no answer")


def _peak_kib(host: Program) -> int:
    status = Path(f"/proc/{host.process.pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0])


def test_a_link_that_comes_and_goes_never_sends_what_is_outside(
    host: Program, worker: RunningWorker, share: Path
) -> None:
    secret = picture(share.parent / "secret.png", "SECRET 99")
    handle = f"file_{hashlib.sha256(secret.read_bytes()).hexdigest()[:32]}"
    path, real, link = picture(share / "moving.png", "OPEN 11"), share / "real", share / "link"

    def swap() -> None:
        path.rename(real)
        link.symlink_to(secret)
        link.rename(path)
        path.unlink()
        real.rename(path)

    sent: set[str] = set()
    texts: list[str] = []
    until_s = time.monotonic() + PATIENCE_S
    with again_and_again(swap):
        while len(texts) < 300 or not sent or not any("file_refused" in text for text in texts):
            assert time.monotonic() < until_s
            result = host.call("get_status", path=str(path))
            texts.append(result["content"][0]["text"])
            sent |= {entry["handle"] for entry in result.get("_meta", {}).get(META_KEY, [])}
    assert handle not in stored(worker)
    assert sent == {f"file_{hashlib.sha256(path.read_bytes()).hexdigest()[:32]}"}


@pytest.fixture
async def station() -> AsyncIterator[StationClient]:
    async with running_station(Timings()) as client:
        yield client


async def test_through_the_station_a_nested_path_is_read(
    station: StationClient, worker: RunningWorker, share: Path
) -> None:
    path = await anyio.to_thread.run_sync(picture, share / "station.png", "STATION 5")
    env_vars = {"SAM2_MCP_URL": f"{worker.base_url}/mcp", "SAM2_MCP_TOKEN": TOKEN, "SAM2_MCP_SHARE": str(share)}
    session = await station.start("sam2_mcp_bridge", command="-m", env_vars=env_vars)
    text = await loader.call_tool(station.http, session, "read_text", {"kwargs": {"source": str(path)}})
    assert "5" in json.loads(text)["lines"][-1]["text"]
