"""What an author of a rule pack is told: doubts as warnings, what makes it unusable as errors; and the command."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from tests.fakes.rule_pack_texts import ALL, CLEAN, FORBIDDEN, HEAD, HOUSE, LAW_RULE, PHRASE

from sam2_mcp_worker.checks.rule_lint import lint
from sam2_mcp_worker.checks.rule_packs import pack_bytes, rule_pack_names
from sam2_mcp_worker.cli.parser import run

DAY = date(2026, 11, 30)


def warnings(text: str, day: date = DAY) -> list[str]:
    found = lint(text.encode("utf-8"), day)
    assert [one for one in found if one.level == "error"] == []
    return [one.what for one in found]


@pytest.mark.parametrize("name", rule_pack_names())
def test_the_packs_that_come_along_have_no_errors(name: str) -> None:
    found = lint(pack_bytes(name)[1], DAY)
    assert [one.what for one in found if one.level == "error"] == []


def test_the_korean_pack_has_no_doubts_and_a_clean_pack_none_either() -> None:
    assert lint(pack_bytes("korean_insurance_ads")[1], DAY) == ()
    assert warnings(CLEAN) == []
    assert warnings(CLEAN.replace("제22조제3항제3호가목", "section 22")) == []  # as laws of other countries have them


SECOND = PHRASE.replace('"one"', '"three"')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CLEAN + SECOND.replace("some length", "some lengths"), "phrases.one and phrases.three: "),
        (CLEAN.replace('length"]', 'length", "A mandatory  wording of some length"]', 1), "phrases.one: "),
        (CLEAN.replace("a mandatory wording of", "a mandatory best wording of", 1), "forbidden.bad: "),
        (CLEAN.replace("a mandatory wording of some length", "short", 1), "'short' is short"),
        (CLEAN.replace('["best"]', '["x"]', 1), "'x' is so short"),
        (CLEAN.replace('["best"]', '["be st", "BEST"]', 1), "'best' stands there twice"),
        (CLEAN.replace(HOUSE, HOUSE + "valid_until = 2026-01-01\n", 1), "has not held since 2026-01-01"),
        (CLEAN.replace(HOUSE, HOUSE + "valid_until = 2026-01-01\n", 1), "without an end"),
        (CLEAN.replace("in_force = 2026-01-02", "in_force = 2027-01-02"), "not in force before 2027-01-02"),
        (CLEAN.replace(LAW_RULE, ""), "laws.act: no rule names it"),
        (CLEAN.replace("An act", "보험업법").replace("가목", "(a)"), "'제22조제3항제3호(a)' is no article"),
        (CLEAN + f"[text]\n{HOUSE}", "text: it asks for nothing"),
        (CLEAN + '[[verdict.rows]]\nkind = "any"\nverdict = "review"\nlabel = "reject"\n', "verdict.rows.4: "),
        (CLEAN.replace('room = "room"\n', ""), "verdict.rooms.room: no row leads there"),
        (ALL, "no row speaks of phrase_altered"),
    ],
)
def test_doubts_are_told(text: str, said: str) -> None:
    assert any(said in what for what in warnings(text)), warnings(text)


def test_signs_that_tell_nothing_are_told() -> None:
    applies = SECOND.replace('need = "always"', 'need = "when_it_applies"\nwhen = "it is so"')
    applies = applies.replace("a mandatory wording of some length", "quite another sentence about renewal")
    assert any("for a person" in what for what in warnings(CLEAN + applies))
    sign = applies.replace('when = "it is so"', 'when = "it is so"\nsigns = ["wording"]')
    assert any("the sign 'wording' stands in phrases.one" in what for what in warnings(CLEAN + sign))


def test_wordings_that_differ_in_a_number_are_told_apart_and_a_gap_in_time_is_seen() -> None:
    first = PHRASE.replace("of some length", "of 10 units")
    other = SECOND.replace("of some length", "of 20 units")
    assert not any("told apart" in what for what in warnings(HEAD + first + other))
    before = PHRASE.replace(HOUSE, HOUSE + "valid_until = 2026-01-31\n")
    after = PHRASE.replace(HOUSE, HOUSE + "valid_from = 2026-03-01\n")
    assert any("nothing holds between 2026-01-31 and 2026-03-01" in what for what in warnings(HEAD + before + after))


def test_errors_come_with_the_doubts_and_what_is_no_pack_is_one_error() -> None:
    found = lint((ALL + PHRASE + FORBIDDEN.replace("bad", "worse").replace("best", "x")).encode("utf-8"), DAY)
    assert found[0].level == "error" and found[-1].level == "warning"
    assert [one.level for one in lint(b"\xff", DAY)] == ["error"]


def test_the_command_looks_over_packs_and_exits_with_1_for_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["rules", "lint"]) == 0
    assert "korean_insurance_ads: 0 errors, 0 warnings" in capsys.readouterr().out
    good, bad, none = tmp_path / "good.toml", tmp_path / "bad.toml", tmp_path / "none.toml"
    good.write_text(CLEAN, encoding="utf-8")
    bad.write_text(CLEAN + PHRASE, encoding="utf-8")
    assert run(["rules", "lint", str(good)]) == 0
    capsys.readouterr()
    assert run(["rules", "lint", str(good), str(bad), str(none), "--json"]) == 1
    packs = json.loads(capsys.readouterr().out)["packs"]
    levels = [{one["level"] for one in pack["problems"]} for pack in packs]
    assert levels == [set(), {"error", "warning"}, {"error"}] or levels == [set(), {"error"}, {"error"}]


def test_the_command_shows_what_holds_on_a_day(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rules", "show", "--date", "2025-08-31"]) == 0
    then = capsys.readouterr().out
    assert "5천만원" in then and "1억원" not in then and "제22조제3항제3호가목" in then
    assert "준법감시인 심의필" in then and "max_valid_days 366" in then and "min_height_pt 6.0" in then
    assert run(["rules", "show", "generic", "korean_insurance_ads", "--date", "2025-09-01", "--json"]) == 0
    generic, korean = json.loads(capsys.readouterr().out)["packs"]
    assert generic["rules"] == [] and set(generic["sections"]) == {"contrast", "files"}
    assert korean["sections"]["text"]["basis"] == "house" and korean["verdict"]["rows"]
    sections = {rule["section"] for rule in korean["rules"]}
    assert sections == {"phrases", "stale", "forbidden"}
    assert all(rule["source"] for rule in korean["rules"])


def test_a_wrong_day_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(["rules", "show", "--date", "tomorrow"])
    assert stopped.value.code == 2 and "'tomorrow' is no day" in capsys.readouterr().err
    assert run(["rules", "show", "nothing"]) == 3
