"""Whatever the host writes, one line comes back for each request in it, and the session goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.e2e.faults.case import PATIENT_S, answered
from tests.e2e.faults.host_lines import CASES, HostCase
from tests.e2e.faults.session import PROFILES, Session, session
from tests.e2e.faults.stage import Stage
from tests.fakes.upstream import FakeUpstream


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with FakeUpstream() as upstream, Stage(upstream) as stage:
        yield stage


def check(host: Session, case: HostCase) -> None:
    host.write(case.written)
    lines = [host.answer() for _ in case.lines]
    if host.profile == "station":
        wrong = [pair for pair in zip(lines, case.lines, strict=True) if not pair[1].fits(pair[0])]
        assert wrong == []
    else:
        for expected in case.lines:
            found = next((line for line in lines if expected.fits(line)), None)
            assert found is not None, (expected, lines)
            lines.remove(found)
    tag, result = host.tagged_call("next")
    assert answered().mistake(result, tag) is None
    assert host.quiet()


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_line_of_the_host_costs_that_line_at_most(stage: Stage, case: HostCase, profile: str) -> None:
    if case.fresh:
        with session(stage.upstream.url, profile) as host:
            check(host, case)
    else:
        with stage.bridge(profile, PATIENT_S) as host:
            check(host, case)
