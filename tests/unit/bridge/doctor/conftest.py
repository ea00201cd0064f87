"""A healthy server for the doctor, and a CA."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.certificates import Authority
from tests.fakes.upstream import FakeUpstream
from tests.unit.bridge.doctor.checking import TOOLS, take_file, work


@pytest.fixture
def fake() -> Iterator[FakeUpstream]:
    """A server that passes every stage."""
    with FakeUpstream() as server:
        server.on |= {"tools/list": fakes.result({"tools": TOOLS}), "tools/call": work, "POST /files": take_file}
        yield server


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")
