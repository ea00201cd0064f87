"""Closed lists of labels and the rule packs that bring them: what is taken, and every slip by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.labels import MAX_LABEL_CHARS, MAX_LABELS, Label, checked_labels
from sam2_mcp_worker.checks.rule_packs import VideoRules, load_rule_pack, parse_rule_pack, rule_pack_names
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.settings import Settings

PACK = (Label("coin", "round money"), Label("seal", "a stamp"))
VIDEO = '[video]\nmin_text_height_px = 12\nmin_exposure_s = 1.5\nbasis = "house"\nnote = "Ours, not law."\n'
GOOD = 'title = "T"\nversion = 1\n[[labels]]\nname = "a"\ndefinition = "b"\n'


def code_of(names: list[str]) -> str:
    with pytest.raises(WorkerError) as caught:
        checked_labels(names, PACK)
    return caught.value.code


def test_names_keep_their_order_and_those_of_the_pack_bring_their_definitions() -> None:
    labels = checked_labels(["  hand  holding money ", "SEAL", "동전"], PACK)
    assert labels == (Label("hand holding money"), PACK[1], Label("동전"))


def test_default_stands_for_the_pack_and_no_names_are_no_labels() -> None:
    assert checked_labels(["Default", "hand"], PACK) == (*PACK, Label("hand"))
    assert checked_labels([], PACK) == ()


@pytest.mark.parametrize(
    "name",
    [
        "",
        " \t",
        "a\nb",
        "a\x00b",
        "a\u202eb",
        "a\u200bb",
        "a\u2028b",
        "\ud800",
        "...",
        "coin\u3164",
        "a\ufe0f",
        "x" * (MAX_LABEL_CHARS + 1),
    ],
)
def test_what_could_break_a_line_or_hide_in_one_is_refused_and_never_shown_raw(name: str) -> None:
    assert code_of([name]) == "label_invalid"
    with pytest.raises(WorkerError) as caught:
        checked_labels([name], PACK)
    assert caught.value.public_text.isprintable()


@pytest.mark.parametrize("names", [["a", "A"], ["coin", "default"], ["가", "\u1100\u1161"], ["coin", "ｃｏｉｎ"]])
def test_a_label_is_there_once_whatever_its_case_width_or_composition(names: list[str]) -> None:
    assert code_of(names) == "label_twice"


def test_more_labels_than_a_prompt_should_hold_are_refused() -> None:
    names = [f"label {number}" for number in range(MAX_LABELS)]
    assert len(checked_labels(names, PACK)) == MAX_LABELS
    assert code_of([*names, "one more"]) == "too_many_labels"


@given(st.lists(st.text(max_size=80), max_size=25))
def test_whatever_passes_is_a_closed_list_of_printable_lines(names: list[str]) -> None:
    try:
        labels = checked_labels(names, PACK)
    except WorkerError as error:
        assert error.code in ("label_invalid", "label_twice", "too_many_labels")
        assert error.next_step
        return
    found = [label.name for label in labels]
    assert len(found) <= MAX_LABELS
    assert len({name.casefold() for name in found}) == len(found)
    assert all(0 < len(name) <= MAX_LABEL_CHARS and name == " ".join(name.split()) for name in found)
    assert checked_labels(found, PACK) == labels


@pytest.mark.parametrize("name", rule_pack_names())
def test_every_pack_that_comes_along_is_valid_and_explains_each_label(name: str) -> None:
    pack = load_rule_pack(name)
    assert pack.name == name and pack.title and pack.version >= 1
    assert 1 <= len(pack.labels) <= MAX_LABELS
    assert all(label.definition.endswith(".") for label in pack.labels)
    assert checked_labels(["default"], pack.labels) == pack.labels


def test_the_default_pack_knows_what_reviewers_of_advertisements_look_for() -> None:
    pack = load_rule_pack(Settings().rule_pack)
    assert {"coin", "banknote", "product name", "disclaimer", "seal"} <= {label.name for label in pack.labels}


@pytest.mark.parametrize("name", ["", "nothing", "../settings", "Generic", "/no/such/pack.toml", "a\x00.toml"])
def test_an_unknown_pack_is_named_with_those_there_are(name: str) -> None:
    with pytest.raises(WorkerError) as caught:
        load_rule_pack(name)
    assert caught.value.code == "rule_pack_unknown"
    assert "korean_insurance_ads" in caught.value.public_text


def test_an_operators_own_pack_is_taken_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "ours.toml"
    path.write_text(GOOD, encoding="utf-8")
    assert load_rule_pack(str(path)).labels == (Label("a", "b"),)
    path.write_bytes(b"#" * 300_000)
    with pytest.raises(WorkerError) as caught:
        load_rule_pack(str(path))
    assert caught.value.code == "rule_pack_invalid" and "256 KiB" in caught.value.public_text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title = ", "Invalid value"),
        ("version = 1", "title"),
        (GOOD + 'colour = "red"\n', "colour"),
        ("threshold = 1\n" + GOOD, "threshold"),
        (GOOD.replace("version = 1", 'version = "1"'), "version"),
        (GOOD + '[[labels]]\nname = "A"\ndefinition = "c"\n', "twice"),
        (GOOD.replace('"b"', '""'), "a definition is empty"),
        (GOOD.replace('"b"', f'"{"x" * 300}"'), "300 characters"),
        (GOOD.replace('"a"', '"default"'), "`default`"),
        ('title = "T"\nversion = 1\nlabels = []\n', "labels"),
        (GOOD + VIDEO.replace("12", "0"), "video.min_text_height_px"),
        (GOOD + VIDEO.replace("1.5", "nan"), "video.min_exposure_s"),
        (GOOD + VIDEO + "min_text_height_share = 1.0\n", "video.min_text_height_share"),
        (GOOD + VIDEO.replace("house", "law"), "video.basis"),
        (GOOD + VIDEO.replace('note = "Ours, not law."', ""), "video.note"),
    ],
)
def test_a_wrong_pack_is_refused_with_its_mistake(text: str, said: str) -> None:
    with pytest.raises(WorkerError) as caught:
        parse_rule_pack("ours", text.encode("utf-8"))
    assert caught.value.code == "rule_pack_invalid"
    assert said in caught.value.public_text


def test_minimums_for_videos_are_read_each_may_be_left_out_and_so_may_all() -> None:
    video = parse_rule_pack("ours", (GOOD + VIDEO).encode("utf-8")).video
    assert video == VideoRules(min_text_height_px=12, min_exposure_s=1.5, basis="house", note="Ours, not law.")
    assert video.min_text_height_share is None
    assert parse_rule_pack("ours", GOOD.encode("utf-8")).video is None


def test_our_minimums_say_whose_they_are() -> None:
    video = load_rule_pack(Settings().rule_pack).video
    assert video is not None and video.basis == "house" and "not law" in video.note


def test_a_pack_that_is_no_text_is_refused() -> None:
    with pytest.raises(WorkerError) as caught:
        parse_rule_pack("ours", b"\xff\xfe")
    assert caught.value.code == "rule_pack_invalid"
