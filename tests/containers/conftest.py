"""The engine, the base images and the stack, once for all tests in this folder.

They take minutes and a Docker engine, so `pytest tests` leaves this folder out: it runs when it is named.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.containers.bases import STACK_SUITE, Bases
from tests.containers.engine import Unavailable, docker, running_engine
from tests.containers.figures import Figures
from tests.containers.stack import Stack, Station, remove_leftovers, station_at

HERE = Path(__file__).parent
# The first test waits for the engine, a base image and the build of both images.
TIMEOUT_S = 900
CACHE_AGE = "24h"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = any(HERE.name in Path(argument.partition("::")[0]).parts for argument in config.invocation_params.args)
    return None if named else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Docker engine. Where none is to be had the tests are skipped, but never in CI."""
    try:
        with running_engine(tmp_path_factory.mktemp("engine") / "dockerd.log"):
            remove_leftovers()
            yield
    except Unavailable as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI runs the container tests: {error}", pytrace=False)
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def bases(engine: None) -> Iterator[Bases]:
    bases = Bases()
    yield bases
    bases.close()


@pytest.fixture(scope="session")
def figures() -> Figures:
    return Figures()


@pytest.fixture(scope="session")
def built(bases: Bases) -> Iterator[Stack]:
    """The stack with its images built, not started."""
    # Layers of earlier runs that no image has any more; newer ones make the next build quick.
    docker("image", "prune", "--force", "--filter", f"until={CACHE_AGE}")
    stack = Stack(bases.image(STACK_SUITE))
    stack.compose("build")
    yield stack
    stack.down()


@pytest.fixture(scope="session")
def stack(built: Stack) -> Stack:
    """The stack, up and healthy."""
    built.compose("up", "-d")
    built.wait_until_healthy("worker", "station")
    return built


@pytest.fixture
async def station(stack: Stack) -> AsyncIterator[Station]:
    """A client of the station; every session is closed behind the test, whoever opened it."""
    async with station_at(stack.station_port) as station:
        yield station
        await station.close_all()
