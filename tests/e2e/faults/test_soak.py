"""The soak (tests/bench/soak) in short: every kind of fault in a random order, and nothing left behind.

The hour is run by hand: `python -m tests.bench.soak --minutes 60 --check`.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.bench.soak.__main__ import table
from tests.bench.soak.run import Plan, Report, soak
from tests.e2e.faults.session import PROFILES

# Most of it is the allocator finding its size in the first minute; the hour grows by less than 2 MB after that.
MAX_GROWTH_MB = 6.0


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """All profiles at once, as in the hour."""
    plans = [Plan(minutes=0.75, profile=profile, rate_per_s=60.0) for profile in PROFILES]
    with ThreadPoolExecutor(len(plans)) as pool:
        return dict(zip(PROFILES, pool.map(soak, plans), strict=True))


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("profile", PROFILES)
def test_no_answer_is_wrong_and_nothing_is_left_behind(reports: dict[str, Report], profile: str) -> None:
    report = reports[profile]
    sys.stdout.write(table(report.as_dict()))
    assert report.shortcomings(MAX_GROWTH_MB) == []
    assert all(bridge.record.done["calls"] > 200 for bridge in report.bridges)
    assert all(bridge.record.done["stall"] + bridge.record.done["restart"] > 0 for bridge in report.bridges)
