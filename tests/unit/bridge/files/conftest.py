"""A worker that keeps files, a shared folder, and a host of a bridge that shares it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.bridge.files.file_worker import Worker
from tests.unit.bridge.mcp_host import Host, threaded_host


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker() as worker:
        yield worker


@pytest.fixture
def share(tmp_path: Path) -> Path:
    folder = tmp_path / "공유 폴더"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"content of a")
    (folder / "b.png").write_bytes(b"content of b")
    return folder


@pytest.fixture
def host(worker: Worker, share: Path) -> Iterator[Host]:
    with threaded_host(worker.url, share=(share,)) as host:
        host.initialize()
        yield host
