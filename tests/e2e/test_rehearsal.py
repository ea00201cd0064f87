"""Station, bridge and a worker that is killed, restarted, frozen and slow: the short form of the rehearsal.

The thousand calls with the real deadline are run by hand: `python -m tests.e2e.rehearsal`.
"""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.e2e.rehearsal.driver import Report
from tests.e2e.rehearsal.real_worker import real_stage
from tests.e2e.rehearsal.stage import ECHO, Size, rehearse

SIZE = Size(
    calls=150,
    deadline_s=5.0,
    usual_ms=150,
    slow=2,
    hopeless=1,
    kills=2,
    restarts=1,
    freezes=2,
    longest_freeze_s=12.0,
)
# A worker that starts anew loads its models for 2-3 s, so the deadline is longer than with the echo.
REAL_SIZE = replace(SIZE, calls=100, deadline_s=8.0, slow=1, hopeless=0, kills=1, freezes=1, longest_freeze_s=12.0)
SEED = 20261130
# Between the deadline and the longest freeze: a bridge that waits for the worker is over it.
LIMIT_S = 9.0
NAIVE_BRIDGE = Path(__file__).parent / "rehearsal" / "naive_bridge.py"


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """Both rehearsals at once, as they mostly wait: for deadlines, for frozen and starting workers."""
    folder = tmp_path_factory.mktemp("rehearsal")
    for name in ("files", "echo", "real"):
        (folder / name).mkdir()
    stages = {
        "echo": (SIZE, ECHO),
        "real": (REAL_SIZE, real_stage(folder / "files", folder / "data", SEED)),
    }

    def rehearsed(name: str) -> Report:
        size, stage = stages[name]
        return asyncio.run(rehearse(size, SEED, folder / name, stage))

    with ThreadPoolExecutor(len(stages)) as pool:
        return dict(zip(stages, pool.map(rehearsed, stages), strict=True))


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_no_call_gets_a_wrong_answer_or_a_late_one_whatever_happens_to_the_worker(reports: dict[str, Report]) -> None:
    report = reports["echo"]
    sys.stdout.write(report.summary())
    assert report.shortcomings(LIMIT_S, right_share=0.5) == [], report.summary()
    assert len(report.outcomes) == SIZE.calls
    assert {each.kind for each in report.struck} == {"kill", "restart", "freeze"}


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_the_real_worker_survives_the_same_with_its_own_tools(reports: dict[str, Report]) -> None:
    report = reports["real"]
    sys.stdout.write(report.summary())
    assert report.shortcomings(12.0, right_share=0.5) == [], report.summary()


async def test_the_rehearsal_finds_out_a_bridge_that_answers_in_the_wrong_order(tmp_path: Path) -> None:
    small = replace(SIZE, calls=40, slow=0, hopeless=0, kills=0, restarts=0, freezes=0, longest_freeze_s=0.0)
    report = await rehearse(small, 1, tmp_path, replace(ECHO, bridge=(str(NAIVE_BRIDGE),)))
    assert report.having("wrong")
    assert any("wrong answer" in each for each in report.shortcomings(LIMIT_S, right_share=0.5))
