"""Whatever the upstream does to a call, the host reads one line for it, and the session goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.e2e.faults import upstream_connection, upstream_http, upstream_messages, upstream_text
from tests.e2e.faults.case import IMPATIENT_S, Case, answered
from tests.e2e.faults.lanes import Outcomes, chosen, side_by_side
from tests.e2e.faults.session import PROFILES
from tests.e2e.faults.stage import Stage
from tests.fakes.upstream import FakeUpstream

TABLES = (upstream_connection, upstream_http, upstream_text, upstream_messages)
CASES: list[Case] = [case for table in TABLES for case in table.CASES]
# Without handshakes, answers to the server and streams that are taken up again; the heavy ones and those that take a
# whole deadline are no different there.
MODERN_CASES = [case for case in CASES if not case.others and not case.heavy and case.deadline_s > IMPATIENT_S]
# Heavy ones would hold up the short deadlines beside them; those with `others` remember the call they were asked by.
ALONE = {case.name for case in CASES if case.heavy or case.others}
# For an upstream to see a connection close; a bound, not a claim about speed.
CLOSE_PATIENCE_S = 15.0


# All cases of a test run before its first one is asked for.
pytestmark = pytest.mark.timeout(300)


@contextmanager
def own_stage(*, modern: bool = False) -> Iterator[Stage]:
    with FakeUpstream() as upstream, Stage(upstream, modern=modern) as stage:
        yield stage


@pytest.fixture(scope="module")
def stage(outcomes: Outcomes) -> Iterator[Stage]:
    """For what must have the machine to itself, when the lanes are through."""
    with own_stage() as stage:
        yield stage


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Outcomes:
    cases = chosen(request, "test_a_fault_of_the_upstream_costs_one_call_at_most")
    beside_others = {name: case for name, case in cases.items() if case["case"].name not in ALONE}
    return side_by_side(own_stage, check, beside_others)


@pytest.fixture(scope="module")
def modern_outcomes(request: pytest.FixtureRequest) -> Outcomes:
    cases = chosen(request, "test_a_fault_of_a_server_without_a_handshake_costs_no_more")
    return side_by_side(lambda: own_stage(modern=True), check_modern, cases)


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_fault_of_the_upstream_costs_one_call_at_most(
    outcomes: Outcomes, stage: Stage, request: pytest.FixtureRequest, case: Case, profile: str
) -> None:
    if case.name in ALONE:
        check(stage, case, profile)
    else:
        outcomes.check(request)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("case", MODERN_CASES, ids=lambda case: case.name)
def test_a_fault_of_a_server_without_a_handshake_costs_no_more(
    modern_outcomes: Outcomes, request: pytest.FixtureRequest, case: Case, profile: str
) -> None:
    modern_outcomes.check(request)


def check_modern(stage: Stage, case: Case, profile: str) -> None:
    check(stage, case, profile)
    calls = stage.upstream.received("tools/call")
    assert {call.headers["mcp-protocol-version"] for call in calls} == {"2026-07-28"}


def check(stage: Stage, case: Case, profile: str) -> None:
    with stage.bridge(profile, case.deadline_s) as host:
        struck = stage.strike(case)
        tag, result = host.tagged_call("struck")
        assert case.expect.mistake(result, tag) is None
        assert 1 <= len(struck) <= case.posts, "a tools/call is never sent twice"
        assert not case.cut or all(call.cut.wait(CLOSE_PATIENCE_S) for call in struck)
        stage.rest()
        tag, result = host.tagged_call("next")
        assert answered().mistake(result, tag) is None
        assert host.quiet()
