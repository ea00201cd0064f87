import json
from pathlib import Path

import pytest
from tests.conformance.checks import (
    Check,
    Row,
    judge,
    listed_scenarios,
    read_baseline,
    read_results,
    required_scenarios,
)
from tests.conformance.groups import BASELINES, CLIENT_GROUPS, SERVER_GROUPS

PASSED = [Check("one", "SUCCESS"), Check("two", "INFO")]
WARNED = [Check("one", "SUCCESS"), Check("two", "WARNING", "no session")]

LISTED = """Server scenarios (test against a server):
  - ping [2025-06-18,2025-11-25]
  - caching [2026-07-28]
  - tools-list [2025-11-25,2026-07-28]
  - tasks-lifecycle [extension]
"""
REQUIRED = """Required for 2026-07-28 (3 scenarios, frozen):

Server scenarios (test against a server):
  - tools-list
  - caching

Client scenarios (test against a client):
  - tools_call

Run and reported, but never scored:
  extension (1):
    - tasks-lifecycle [server]
"""


def test_results_are_read_by_scenario_whatever_the_time_in_the_folder_name(tmp_path: Path) -> None:
    for folder, status in (
        ("server-ping-2026-07-28T01-02-03-004Z", "SUCCESS"),
        ("tools_call-2026-01-01T00-00-00-000Z", "X"),
    ):
        (tmp_path / folder).mkdir()
        entry = {"id": "a", "status": status, "details": {"message": "why"}}
        (tmp_path / folder / "checks.json").write_text(json.dumps([entry]), encoding="utf-8")
    assert read_results(tmp_path) == {"ping": [Check("a", "SUCCESS", "why")], "tools_call": [Check("a", "X", "why")]}


def test_only_scenarios_of_the_version_are_listed() -> None:
    assert listed_scenarios(LISTED, "2025-11-25") == ["ping", "tools-list"]
    assert listed_scenarios(LISTED, "2026-07-28") == ["caching", "tools-list"]


def test_required_scenarios_are_those_of_the_side_and_scored() -> None:
    assert required_scenarios(REQUIRED, "server") == ["tools-list", "caching"]
    assert required_scenarios(REQUIRED, "client") == ["tools_call"]


def test_a_baseline_entry_without_a_reason_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.yml"
    path.write_text("client: []\nserver:\n  - ping:ping  # stateless\n", encoding="utf-8")
    assert read_baseline(path) == {"ping:ping": "stateless"}
    path.write_text("server:\n  - ping:ping\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no reason"):
        read_baseline(path)


def test_every_baseline_belongs_to_a_group_and_gives_reasons() -> None:
    keys = {group.key for group in (*SERVER_GROUPS, *CLIENT_GROUPS)}
    for path in BASELINES.glob("*"):
        assert path.stem in keys
        assert read_baseline(path)


def test_what_passes_passes() -> None:
    judgement = judge(["a"], {"a": PASSED}, {}, {})
    assert judgement.rows == {"a": Row("pass", (), 1)}
    assert judgement.problems == []


def test_a_warning_fails_unless_it_is_expected() -> None:
    assert judge(["a"], {"a": WARNED}, {}, {}).problems == ["a:two: WARNING no session"]
    judgement = judge(["a"], {"a": WARNED}, {"a:two": "stateless"}, {})
    assert judgement.rows == {"a": Row("expected failure", ("stateless",), 1)}
    assert judgement.problems == []


def test_an_expected_failure_that_did_not_happen_is_a_problem() -> None:
    assert judge(["a"], {"a": PASSED}, {"a:two": "stateless"}, {}).problems == ["expected, but did not happen: a:two"]


def test_an_expected_failure_beside_an_unexpected_one_is_still_a_failure() -> None:
    both = [*WARNED, Check("three", "FAILURE", "broken")]
    judgement = judge(["a"], {"a": both}, {"a:two": "stateless"}, {})
    assert judgement.rows["a"].verdict == "FAIL"
    assert judgement.problems == ["a:three: FAILURE broken"]


def test_a_scenario_that_did_not_run_is_a_problem() -> None:
    assert judge(["a"], {}, {}, {}).problems == ["a: did not run"]
    assert judge(["a"], {"a": []}, {}, {}).problems == ["a: did not run"]


def test_what_does_not_apply_is_not_judged_and_must_exist() -> None:
    judgement = judge(["auth/x", "a"], {"auth/x": WARNED, "a": PASSED}, {}, {"auth/*": "no OAuth", "http-*": "stdio"})
    assert judgement.rows["auth/x"] == Row("not applicable", ("no OAuth",))
    assert judgement.problems == ["expected, but did not happen: http-*"]
