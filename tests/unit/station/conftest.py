"""Fixtures: a station with shortened waits."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.unit.station.harness import SHORT, StationClient, running_station


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def station() -> AsyncIterator[StationClient]:
    async with running_station(SHORT) as client:
        yield client


@pytest.fixture
async def short_init_station() -> AsyncIterator[StationClient]:
    """Does not wait long for initialize."""
    async with running_station(replace(SHORT, init_s=0.5)) as client:
        yield client
