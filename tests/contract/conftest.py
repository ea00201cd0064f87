"""The bridge as a thread of this process, and as the program that the station starts; a scripted server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.contract.station_host import Start
from tests.fakes.upstream import FakeUpstream
from tests.unit.bridge.mcp_host import Host, program_host, threaded_host


@contextmanager
def _program(url: str, **settings: Any) -> Iterator[Host]:
    with program_host(url, **{f"SAM2_MCP_{name.upper()}": str(value) for name, value in settings.items()}) as host:
        yield host


@pytest.fixture(params=["thread", "program"])
def start(request: pytest.FixtureRequest) -> Start:
    return threaded_host if request.param == "thread" else _program


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    with FakeUpstream() as fake:
        yield fake


@pytest.fixture
def host(start: Start, upstream: FakeUpstream) -> Iterator[Host]:
    with start(upstream.url) as host:
        host.initialize()
        yield host
