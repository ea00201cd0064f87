"""Uploads, artifacts, cached readings and work directories on a real disk."""

import asyncio
import errno
import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from sam2_mcp_worker.artifacts import Artifacts
from sam2_mcp_worker.disk import check_data_dir, storage_errors, sweep, write_whole
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.result_cache import ResultCache, cache_key
from sam2_mcp_worker.uploads import Uploads, clean_name
from sam2_mcp_worker.workdirs import WorkRoot


async def body(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path / "files", max_bytes=1000, retention_h=24)


async def test_the_same_bytes_get_the_same_handle_and_are_stored_once(uploads: Uploads, tmp_path: Path) -> None:
    first = await uploads.store(body(b"ab", b"c"), "one.pdf")
    second = await uploads.store(body(b"abc"), "two.pdf")
    assert first.handle == second.handle == f"file_{hashlib.sha256(b'abc').hexdigest()[:32]}"
    assert uploads.get(first.handle).path.read_bytes() == b"abc"
    assert len(list((tmp_path / "files").iterdir())) == 1


async def test_two_hundred_uploads_at_once_leave_whole_files_and_no_parts(uploads: Uploads, tmp_path: Path) -> None:
    stored = await asyncio.gather(*(uploads.store(body(bytes([i % 7]) * 100), f"{i}.bin") for i in range(200)))
    assert len({file.handle for file in stored}) == 7
    for file in stored:
        assert hashlib.sha256(file.path.read_bytes()).hexdigest() == file.sha256
    assert not list((tmp_path / "files").glob(".*"))


async def test_a_file_above_the_limit_is_refused_and_nothing_is_kept(uploads: Uploads, tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="1000 bytes") as caught:
        await uploads.store(body(b"x" * 600, b"x" * 600), "big")
    assert caught.value.code == "upload_too_large"
    assert list((tmp_path / "files").iterdir()) == []


async def test_an_empty_upload_is_refused(uploads: Uploads) -> None:
    with pytest.raises(WorkerError, match="0 bytes"):
        await uploads.store(body(), "empty")


async def test_an_upload_that_breaks_off_leaves_nothing(uploads: Uploads, tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"start"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await uploads.store(broken(), "cut")
    assert list((tmp_path / "files").iterdir()) == []


@pytest.mark.parametrize("handle", ["", "file_", "file_../../etc/passwd", "file_" + "0" * 32, "FILE_" + "0" * 32, "\0"])
def test_unknown_and_hostile_handles_are_unknown(uploads: Uploads, handle: str) -> None:
    with pytest.raises(WorkerError, match="upload it again") as caught:
        uploads.get(handle)
    assert caught.value.code == "file_unknown"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a/b/약관.pdf", "약관.pdf"),
        ("..\\x.pdf", "x.pdf"),
        ("\x00\n", "file"),
        ("", "file"),
        ("a" * 300, "a" * 120),
        ("\ud800", "file"),
    ],
)
def test_file_names_are_cleaned(given: str, kept: str) -> None:
    assert clean_name(given) == kept


def test_an_artifact_comes_back_as_it_was_put(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path, 24)
    put = artifacts.put(b"picture", name="page-1.jpg", mime_type="image/jpeg")
    about, path = artifacts.get(put.handle)
    assert about == put
    assert path.read_bytes() == b"picture"
    assert put.uri == f"artifact://{put.handle}"
    again = artifacts.put(b"longer", name="r.html", mime_type="text/html", handle=put.handle)
    assert again.handle == put.handle
    assert artifacts.get(put.handle)[1].read_bytes() == b"longer"


@pytest.mark.parametrize("handle", ["art_" + "x" * 22, "art_../../../../etc/pas", "", "art_" + "/" * 22])
def test_unknown_and_hostile_artifact_handles_are_unknown(tmp_path: Path, handle: str) -> None:
    artifacts = Artifacts(tmp_path, 24)
    assert not artifacts.holds(handle)
    assert not artifacts.holds(None)
    with pytest.raises(WorkerError, match="no artifact"):
        artifacts.get(handle)


def test_keys_differ_in_every_part() -> None:
    keys = {cache_key("a", 1), cache_key("a", 2), cache_key("a", "1"), cache_key("a1"), cache_key("a", None, 1)}
    assert len(keys) == 5


async def test_a_value_is_computed_once_for_all_who_wait(tmp_path: Path) -> None:
    cache, gate, runs = ResultCache(tmp_path), asyncio.Event(), []

    async def compute() -> dict[str, int]:
        runs.append(1)
        await gate.wait()
        return {"value": 7}

    waiting = [asyncio.create_task(cache.get_or_compute("ab" * 32, compute)) for _ in range(50)]
    while not runs:
        await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(*waiting) == [{"value": 7}] * 50
    assert len(runs) == 1
    assert ResultCache(tmp_path).get("ab" * 32) == {"value": 7}


async def test_whoever_looks_while_a_value_is_being_stored_does_not_compute_it_again(tmp_path: Path) -> None:
    looks: list[str] = []
    stored = threading.Event()

    class Late(ResultCache):
        """Its second look-up finds nothing, and comes back when the value has been stored."""

        def get(self, key: str) -> Any | None:
            looks.append(key)
            value = super().get(key)
            if len(looks) == 2:
                stored.wait(20)
            return value

    cache, runs = Late(tmp_path), []

    async def compute() -> int:
        runs.append(1)
        return 7

    first, second = (asyncio.create_task(cache.get_or_compute("bc" * 32, compute)) for _ in range(2))
    assert await first == 7
    stored.set()
    assert await second == 7
    assert len(runs) == 1


async def test_one_cancelled_caller_does_not_stop_the_others_and_the_last_one_does(tmp_path: Path) -> None:
    cache, begun, gate, ended = ResultCache(tmp_path), asyncio.Event(), asyncio.Event(), []

    async def compute() -> int:
        try:
            begun.set()
            await gate.wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return 1

    first, second = (asyncio.create_task(cache.get_or_compute("cd" * 32, compute)) for _ in range(2))
    while "waiting 2" not in f"waiting {sum(f.waiting for f in cache._running.values())}":
        await asyncio.sleep(0)
    await begun.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert ended == []
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    await asyncio.sleep(0)
    assert ended == ["cancelled"]
    assert repr(cache) == "<ResultCache [0 computing]>"


async def test_an_error_reaches_every_caller_and_is_not_kept(tmp_path: Path) -> None:
    cache, outcomes = ResultCache(tmp_path), [WorkerError("page_bad", "bad"), 5]

    async def compute() -> int:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return int(str(outcome))

    with pytest.raises(WorkerError):
        await cache.get_or_compute("ef" * 32, compute)
    assert await cache.get_or_compute("ef" * 32, compute) == 5


async def test_a_damaged_or_stale_entry_is_computed_again(tmp_path: Path) -> None:
    cache, key = ResultCache(tmp_path), "0a" * 32

    async def compute() -> str:
        return "new"

    write_whole(tmp_path / key[:2] / f"{key}.json", b'{"half')
    assert await cache.get_or_compute(key, compute) == "new"
    assert await cache.get_or_compute(key, compute, fresh=lambda value: value != "new") == "new"


def test_a_disk_that_refuses_costs_the_caching_only(tmp_path: Path) -> None:
    (tmp_path / "00").write_text("a file where a folder should be", encoding="utf-8")
    cache = ResultCache(tmp_path)
    cache.put("00" * 32, {"value": 1})
    assert cache.get("00" * 32) is None


def test_the_sweep_removes_the_old_and_then_the_longest_unused(tmp_path: Path) -> None:
    for index in range(5):
        folder = tmp_path / f"entry{index}"
        write_whole(folder / "data", b"x" * 100)
        os.utime(folder, (1000 + index, 1000 + index))
    assert sweep(tmp_path.iterdir(), max_age_s=10, max_bytes=10_000, now_s=1012) == 2  # 0 and 1 are older than 10 s
    assert sweep(tmp_path.iterdir(), max_age_s=100, max_bytes=150, now_s=1012) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["entry4"]


@pytest.fixture
def work(tmp_path: Path) -> Iterator[WorkRoot]:
    work = WorkRoot(tmp_path / "work")
    work.open()
    yield work
    work.close()


def test_no_two_work_directories_share_a_path_and_all_are_removed(work: WorkRoot, tmp_path: Path) -> None:
    seen = set()
    for _ in range(200):
        with work.directory("page") as path:
            (path / "tile").write_text("x", encoding="utf-8")
            assert path not in seen
            seen.add(path)
    assert list(work.path.iterdir()) == []
    work.close()
    assert list((tmp_path / "work").iterdir()) == []


RUN_AND_DIE = """
import os, sys
from pathlib import Path
from sam2_mcp_worker.workdirs import WorkRoot
os.getpid = lambda: 7  # in a container the next worker often has the id of the dead one
work = WorkRoot(Path(sys.argv[1]))
work.open()
directory = work.directory("page")
(directory.__enter__() / "tile").write_text("x", encoding="utf-8")
print(work.path, flush=True)
sys.stdin.read()
os._exit(9)
"""


def test_what_a_killed_worker_left_is_removed_and_what_live_ones_use_is_not(
    work: WorkRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 7)
    other = subprocess.Popen(
        [sys.executable, "-c", RUN_AND_DIE, str(tmp_path / "work")], stdin=PIPE, stdout=PIPE, encoding="utf-8"
    )
    assert other.stdout is not None
    theirs = Path(other.stdout.readline().strip())
    with work.directory("page") as mine:
        assert WorkRoot(tmp_path / "work").open() == 0
        assert [path.name for path in theirs.glob("*/*")] == ["tile"]
        other.communicate()
        again = WorkRoot(tmp_path / "work")
        assert again.open() == 1
        assert mine.is_dir()
        assert not theirs.exists()
        again.close()
        assert mine.is_dir()


def test_a_work_root_can_be_opened_again(work: WorkRoot) -> None:
    before = work.path
    work.close()
    work.close()
    assert work.open() == 0
    with work.directory("page") as path:
        assert path.parent == work.path != before


async def test_an_upload_that_the_disk_refuses_says_what_to_check(uploads: Uploads, tmp_path: Path) -> None:
    (tmp_path / "files").write_text("a file where the folder should be", encoding="utf-8")
    with pytest.raises(WorkerError, match="SAM2_MCP_DATA_DIR") as caught:
        await uploads.store(body(b"abc"), "x")
    assert caught.value.code == "storage_failed"
    assert str(tmp_path) not in caught.value.public_text


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "no_space"),
        (errno.EDQUOT, "no_space"),
        (errno.EFBIG, "no_space"),
        (errno.EROFS, "storage_failed"),
    ],
)
def test_a_full_disk_is_told_from_a_broken_one(number: int, code: str) -> None:
    with pytest.raises(WorkerError) as caught, storage_errors():
        raise OSError(number, os.strerror(number), "/somewhere")
    assert caught.value.code == code
    assert "/somewhere" not in caught.value.public_text


def test_a_data_directory_that_cannot_be_written_names_the_setting(tmp_path: Path) -> None:
    check_data_dir(tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(WorkerError, match="set SAM2_MCP_DATA_DIR") as caught:
        check_data_dir(tmp_path / "file" / "data")
    assert caught.value.code == "data_dir_unwritable"
