"""Rule packs as a whole: what holds on a day, where it comes from, and every mistake by its place."""

from __future__ import annotations

import os
import re
from datetime import date
from pathlib import Path

import pytest
from tests.fakes.rule_pack_texts import ALL, HEAD, HOUSE, LAW, PHRASE, ROOM

from sam2_mcp_worker.checks.phrases import MAX_PHRASE_CHARS
from sam2_mcp_worker.checks.rule_packs import (
    MAX_PACK_BYTES,
    ContrastRules,
    FileRules,
    ForbiddenRule,
    Law,
    PhraseRule,
    Room,
    SealFormat,
    SealRules,
    SpeechRules,
    StaleRule,
    TextRules,
    VerdictRow,
    VideoRules,
    load_rule_pack,
    parse_rule_pack,
    read_pack,
    rule_pack_names,
)
from sam2_mcp_worker.checks.rule_packs.schema import MAX_TEXT_CHARS
from sam2_mcp_worker.errors import WorkerError

PACK = load_rule_pack("korean_insurance_ads")


def test_a_pack_with_every_part_is_taken() -> None:
    pack = parse_rule_pack("ours", ALL.encode("utf-8"))
    assert [len(part) for part in (pack.laws, pack.phrases, pack.stale, pack.forbidden)] == [1, 1, 1, 1]
    assert pack.verdict.rows[0].room == pack.verdict.rooms[0].id


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        (ALL.replace('need = "always"', ""), "phrases.1.need", "required"),
        (ALL.replace('need = "always"', 'need = "when_it_applies"'), "phrases.1", "`when`"),
        (ALL.replace('need = "always"', 'need = "always"\nwhen = "x"'), "phrases.1", "`when`"),
        (ALL.replace('need = "always"', 'need = "always"\nsigns = ["x"]'), "phrases.1", "signs"),
        (ALL.replace('need = "always"', 'need = "always"\nchannel = "sung"'), "phrases.1.channel", "shown"),
        (ALL.replace('need = "always"', 'need = "always"\npattern = "x.*"'), "phrases.1.pattern", "not permitted"),
        (ALL.replace("a mandatory wording", "x" * 400), "phrases.1.texts.1", "300"),
        (ALL.replace("a mandatory wording of some length", "...!"), "phrases.one", "no letter"),
        (ALL.replace('texts = ["a mandatory wording of some length"]', "texts = []"), "phrases.1.texts", "1 item"),
        (ALL.replace('id = "one"', 'id = "One"'), "phrases.1.id", "pattern"),
        (ALL.replace(HOUSE, 'basis = "law"\nlaw = "act"\n', 1), "phrases.1", "article"),
        (ALL.replace(HOUSE, 'basis = "law"\narticle = "제1조"\n', 1), "phrases.1", "law"),
        (ALL.replace(HOUSE, 'basis = "law"\nlaw = "other"\narticle = "제1조"\n', 1), "phrases.one", "'other'"),
        (ALL.replace(HOUSE, 'basis = "house"\n', 1), "phrases.1", "`note`"),
        (ALL.replace(HOUSE, HOUSE + 'article = "제1조"\n', 1), "phrases.1", "no law and no article"),
        (ALL.replace(HOUSE, HOUSE + "valid_from = 2026-02-01\nvalid_until = 2026-01-01\n", 1), "phrases.1", "never"),
        (ALL.replace(HOUSE, HOUSE + 'valid_from = "2026-02-01"\n', 1), "phrases.1.valid_from", "date"),
        (ALL + PHRASE, "phrases.one", "same day"),
        (ALL.replace('id = "bad"', 'id = "one"'), "forbidden.one", "phrases"),
        (ALL.replace('id = "bad"', 'id = "seal"'), "forbidden.seal", "name of a section"),
        (ALL + LAW, "laws.act", "twice"),
        (ALL + ROOM, "verdict.rooms.room", "twice"),
        (ALL.replace('instead = "one"', 'instead = "two"'), "stale.old", "'two'"),
        (ALL.replace("what it was before", "a mandatory wording of some length"), "stale.old", "after 2025-08-31"),
        (ALL.replace('"best"', '"best {sum}"'), "forbidden.bad", "{sum}"),
        (ALL.replace('"best"', '"best {amount"'), "forbidden.bad", "slots are"),
        (ALL.replace('"best"', '"{amount}!"'), "forbidden.bad", "of its own"),
        (ALL.replace('"best"', '"{number}{number} x {number}"'), "forbidden.bad", "more than 2 slots"),
        (ALL.replace("what it was before", "...!"), "stale.old", "no letter"),
        (
            ALL.replace('verdict = "not_met"', 'verdict = "cannot_tell"').replace('"conditional"', '"approve"'),
            "verdict.rows.1",
            "not known",
        ),
        (HEAD + f"[files]\npage_sizes_mm = [[-1, inf]]\n{HOUSE}", "files.page_sizes_mm.1.1", "greater"),
        (ALL.replace('room = "room"', 'room = "hall"'), "verdict.rows.1", "'hall'"),
        (ALL.replace('label = "reject"', 'label = "conditional"'), "verdict.rows.1", "not milder"),
        (ALL.replace('kind = "phrase_missing"', 'kind = "any"\nat_least = 2'), "verdict.rows.1", "counts from 1"),
        (ALL.replace('kind = "phrase_missing"', 'kind = "ugly"'), "verdict.rows.1.kind", "phrase_missing"),
        (HEAD + f"[text]\nmin_height_pt = 0\n{HOUSE}", "text.min_height_pt", "greater"),
        (HEAD + f"[contrast]\nmin_ratio = 22\n{HOUSE}", "contrast.min_ratio", "21"),
        (HEAD + f'[files]\ncolour_spaces = ["red"]\n{HOUSE}', "files.colour_spaces.1", "cmyk"),
        (HEAD + f"[speech]\nmax_rate_ratio = inf\n{HOUSE}", "speech.max_rate_ratio", "10"),
        (HEAD + f'[seal]\nnames = ["x"]\n[seal.format]\n{HOUSE}', "seal.basis", "required"),
    ],
)
def test_every_mistake_is_told_with_its_place(text: str, place: str, said: str) -> None:
    with pytest.raises(WorkerError) as caught:
        parse_rule_pack("ours", text.encode("utf-8"))
    assert caught.value.code == "rule_pack_invalid"
    assert f": {place}: " in caught.value.public_text and said in caught.value.public_text


def test_all_mistakes_are_found_not_only_the_first() -> None:
    _, wrong = read_pack((ALL + PHRASE + LAW).encode("utf-8"))
    assert [one.partition(":")[0] for one in wrong] == ["phrases.one", "laws.act"]
    pack, wrong = read_pack(ALL.replace("version = 1", "").replace('need = "always"', "").encode("utf-8"))
    assert pack is None and len(wrong) == 2
    _, wrong = read_pack((ALL.replace('name = "a"', 'name = "default"') + LAW).encode("utf-8"))
    assert [one.partition(":")[0] for one in wrong] == ["labels", "laws.act"]


def test_nested_without_end_is_a_mistake_like_any_other() -> None:
    pack, wrong = read_pack(b"a = " + b"[" * 100_000)
    assert pack is None and len(wrong) == 1 and len(wrong[0]) <= 200


@pytest.mark.parametrize(
    ("day", "held", "stale"),
    [("2025-08-31", "5천만원", 0), ("2025-09-01", "1억원", 2), ("2026-11-30", "1억원", 2)],
)
def test_a_pack_knows_from_when_to_when_a_wording_held(day: str, held: str, stale: int) -> None:
    pack = PACK.on(date.fromisoformat(day))
    (rule,) = [rule for rule in pack.phrases if rule.id == "deposit_protection"]
    assert all(held in text for text in rule.texts)
    assert len(pack.stale) == stale
    assert pack.labels == PACK.labels and pack.video == PACK.video


def test_a_pack_that_is_no_plain_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "large.toml").write_bytes(b"#" * (MAX_PACK_BYTES + 1))
    for name, code in (("pipe", "unknown"), ("folder", "unknown"), ("large", "invalid")):
        with pytest.raises(WorkerError) as caught:
            load_rule_pack(str(tmp_path / f"{name}.toml"))
        assert caught.value.code == f"rule_pack_{code}"


def test_a_rule_says_where_it_comes_from() -> None:
    rule = PACK.rule("replacement")
    assert rule is not None
    assert PACK.source_of(rule) == (
        "금융소비자 보호에 관한 법률 제22조제3항제3호가목 (version in force since 2026-01-02, lsiSeq 277247)"
    )
    house = PACK.rule("text.min_height_pt")
    assert house is PACK.text and house is not None and "not law" in PACK.source_of(house)
    assert PACK.rule("seal") is PACK.seal
    assert PACK.seal is not None and PACK.rule("seal.number") is PACK.seal.format
    for name in ("", "name", "labels", "verdict.rows", "no_such_rule"):
        assert PACK.rule(name) is None


@pytest.mark.parametrize("name", rule_pack_names())
def test_what_is_law_names_an_article_of_a_law_of_the_pack_and_the_rest_whose_it_is(name: str) -> None:
    pack = load_rule_pack(name)
    sections = (
        pack.seal,
        pack.seal and pack.seal.format,
        pack.text,
        pack.contrast,
        pack.files,
        pack.speech,
        pack.video,
    )
    rules = [*pack.phrases, *pack.stale, *pack.forbidden, *(one for one in sections if one is not None)]
    assert rules
    for rule in rules:
        assert pack.source_of(rule)
        assert (rule.basis == "law") == bool(rule.article) == any(law.id == rule.law for law in pack.laws)


def test_numbers_without_a_law_are_house_values() -> None:
    for section in (PACK.text, PACK.contrast, PACK.files, PACK.speech, PACK.video):
        assert section is not None and section.basis == "house" and "law" in section.note


def test_a_pack_of_another_field_asks_for_no_wording() -> None:
    generic = load_rule_pack("generic")
    assert not (generic.phrases or generic.stale or generic.forbidden or generic.seal or generic.video)
    assert generic.contrast is not None and generic.verdict.rows


def test_the_limit_of_a_wording_is_that_of_a_phrase() -> None:
    assert MAX_TEXT_CHARS == MAX_PHRASE_CHARS


def test_the_documentation_names_every_field_of_a_pack() -> None:
    text = (Path(__file__).parents[3] / "docs" / "rule-packs.md").read_text(encoding="utf-8")
    models = (PhraseRule, StaleRule, ForbiddenRule, SealRules, SealFormat, VerdictRow, Room, Law)
    sections = (TextRules, ContrastRules, FileRules, SpeechRules, VideoRules)
    fields = {field for model in (*models, *sections) for field in model.model_fields}
    assert sorted(field for field in fields if not re.search(rf"\b{field}\b", text)) == []


def test_a_path_that_no_file_system_takes_is_an_unknown_pack() -> None:
    with pytest.raises(WorkerError, match="rule"):
        load_rule_pack("a" * 5000 + ".toml")
