"""Files that change while they are sent, and hashes that are remembered."""

import hashlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.upstream import Call
from tests.unit.bridge.files.file_worker import (
    HEAD,
    LIMIT,
    POST,
    Worker,
    call,
    failure,
    handle,
    lasting,
    replaced,
    unknown,
    uploads,
)
from tests.unit.bridge.mcp_host import PATIENCE_S

from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.files import uploads as module
from sam2_mcp_bridge.files.shares import CHUNK_BYTES, SharedFile
from sam2_mcp_bridge.transport.transport import Exchange

# Files that change


class Meddling(Exchange):
    """Something else happens to the file whenever the bridge looks whether the call was aborted."""

    def __init__(self, act: Any) -> None:
        super().__init__(time.monotonic() + 20)
        self._act = act

    def pause(self, seconds: float) -> None:
        self._act()
        super().pause(seconds)


def appended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


@pytest.mark.parametrize("act", [appended, lambda path: os.truncate(path, 5), lambda path: path.write_bytes(b"new")])
def test_a_file_that_changes_while_it_is_hashed_is_not_sent(worker: Worker, share: Path, act: Any) -> None:
    (share / "large").write_bytes(bytes(2 * CHUNK_BYTES))
    with pytest.raises(Failure) as caught:
        call(uploads(worker, share), share / "large", Meddling(lambda: act(share / "large")))
    assert caught.value.code == "file_changed" and worker.counts() == (0, 0)


def test_a_file_overwritten_between_hash_and_upload_is_noticed(worker: Worker, share: Path) -> None:
    async def overwrite(call: Call) -> None:
        (share / "a.png").write_bytes(b"content of b")
        await unknown(call)

    worker.on[HEAD] = overwrite
    assert failure(uploads(worker, share), share / "a.png").code == "file_changed"
    assert not worker.received("tools/call")


def test_a_file_truncated_during_the_upload_breaks_it_off(worker: Worker, share: Path) -> None:
    cut = threading.Event()

    async def truncate(call: Call) -> None:
        await call.reader.read(1)
        os.truncate(share / "large", 1)
        while await call.reader.read(2**20):
            pass
        cut.set()

    (share / "large").write_bytes(bytes(LIMIT))
    worker.unread.add(POST)
    worker.on[POST] = truncate
    assert failure(uploads(worker, share), share / "large").code == "file_changed"
    assert cut.wait(PATIENCE_S)


def test_a_file_that_grows_during_the_upload_is_sent_as_it_was(worker: Worker, share: Path) -> None:
    async def grow(call: Call) -> None:
        appended(share / "a.png")
        await unknown(call)

    worker.on[HEAD] = grow
    assert replaced(call(uploads(worker, share), share / "a.png").value)[0]["size_bytes"] == 12
    assert worker.received(POST)[0].body == b"content of a"


def test_a_file_that_cannot_be_read_on_says_so(worker: Worker, share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int, count: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", broken)
    error = failure(uploads(worker, share), share / "a.png")
    monkeypatch.undo()
    assert error.code == "file_refused" and "Input/output error" in str(error)


# Hashes that are remembered


def closed(path: Path) -> SharedFile:
    """As it is, but whoever reads it fails."""
    return SharedFile(str(path), -1, path.stat())


def settle(path: Path) -> None:
    """Give the file a time stamp of long ago, always the same."""
    os.utime(path, (10**9, 10**9))


def test_a_file_that_has_not_changed_for_a_while_is_hashed_once(worker: Worker, share: Path) -> None:
    settle(share / "a.png")
    these = uploads(worker, share)
    call(these, share / "a.png")
    assert these._sha256(lasting(), closed(share / "a.png")) == hashlib.sha256(b"content of a").hexdigest()
    (share / "a.png").write_bytes(b"content of b")
    settle(share / "a.png")
    assert replaced(call(these, share / "a.png").value)[0]["handle"] == handle(b"content of b")


def test_a_file_that_has_just_changed_may_change_again_and_is_not_remembered(worker: Worker, share: Path) -> None:
    these = uploads(worker, share)
    call(these, share / "a.png")
    assert these._hashes == {}


def test_the_memory_of_hashes_is_bounded(worker: Worker, share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KNOWN_HASHES", 2)
    these = uploads(worker, share)
    for number in range(5):
        (share / f"{number}").write_bytes(b"%d" % number)
        settle(share / f"{number}")
        call(these, share / f"{number}")
    assert list(these._hashes) == [closed(share / f"{number}").identity for number in (3, 4)]
