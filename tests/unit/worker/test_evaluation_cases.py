"""Case files are checked whole before anything runs; what is kept of runs survives a kill."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.evaluation import case_files
from sam2_mcp_worker.evaluation.case_files import Case, ExpectedFinding, ObserveRule, load_case_files
from sam2_mcp_worker.evaluation.observing import RULES, label_in, most_severe, observed, settled, undone_in
from sam2_mcp_worker.evaluation.profile import WorkflowProfile, filled
from sam2_mcp_worker.evaluation.runs import Observed, RunRecord, RunStore, new_run_id

SHIPPED = sorted((Path(case_files.__file__).parent / "cases").glob("*.toml"))
GOOD = """
title = "good"
[sources]
ad = { path = "ad.pdf" }
[[cases]]
id = "one"
label = "reject"
[[cases.calls]]
tool = "inspect_pdf"
arguments = { source = "{ad}", labels = ["{not a name}"] }
[[cases.findings]]
kind = "page_failed"
about = ["1", "2"]
"""


def written(tmp_path: Path, text: str, name: str = "cases.toml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_file_is_read_with_its_folder(tmp_path: Path) -> None:
    (file,) = load_case_files([written(tmp_path, GOOD)])
    assert file.folder == tmp_path.resolve()
    (case,) = file.cases
    assert case.source_names == {"ad"}
    assert list(case.findings[0].each()) == [("page_failed", "1"), ("page_failed", "2")]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_cases_are_good_and_ask_and_expect_something(path: Path) -> None:
    (file,) = load_case_files([path])
    for case in file.cases:
        assert case.findings or case.label
        for call in case.calls:
            assert call.observe or call.tool in RULES


def test_there_are_shipped_cases() -> None:
    assert SHIPPED


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("title", "titel"), "title: Field required"),
        (('"reject"', '"no"'), "cases.0.label"),
        (('"{ad}"', '"{banner}"'), "{banner} is not among the sources"),
        (('path = "ad.pdf"', 'path = "ad.pdf", demo = "leaflet"'), "either path or demo"),
        (('id = "one"', 'id = "One two"'), "cases.0.id"),
        (("ad = {", "Ad-1 = {"), "source 'Ad-1': up to 20 small letters"),
        (("[[cases.calls]]", "[[cases.other]]"), "cases.0.other"),
        (("[[cases.findings]]", '[[cases]]\nid = "one"\ninput = "x"\n[[cases.findings]]'), "two cases have the id one"),
        (("[[cases.findings]]", '[[cases]]\nid = "two"\n[[cases.findings]]'), "give calls (for tools) or input"),
        (("[sources]", "[workflow]\nbody = { a = '{input}' }\n[sources]"), "body must hold {run_id}"),
        (("[sources]", "[workflow]\nbody = { a = '{run_id}' }\n[sources]"), "body must hold {input}"),
        (("[sources]", "[workflow]\necho_query = {}\n[sources]"), "must hold {run_id}"),
        (("title = ", "title == "), "cases.toml"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_place(tmp_path: Path, change: tuple[str, str], text: str) -> None:
    assert change[0] in GOOD
    with pytest.raises(WorkerError, match="case_file_invalid") as error:
        load_case_files([written(tmp_path, GOOD.replace(*change))])
    assert text in error.value.public_text


def test_files_that_are_missing_huge_or_no_text_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkerError, match="case_file_unreadable"):
        load_case_files([tmp_path / "none.toml"])
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WorkerError, match="case_file_invalid"):
        load_case_files([tmp_path / "binary.toml"])
    (tmp_path / "deep.toml").write_text("x = " + "[" * 5000, encoding="utf-8")
    with pytest.raises(WorkerError, match="case_file_invalid"):
        load_case_files([tmp_path / "deep.toml"])
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(WorkerError, match="no plain file"):
        load_case_files([tmp_path / "pipe.toml"])
    monkeypatch.setattr(case_files, "MAX_CASE_FILE_BYTES", 10)
    with pytest.raises(WorkerError, match="more than 10 bytes"):
        load_case_files([written(tmp_path, GOOD)])


def test_an_id_may_stand_in_one_file_only(tmp_path: Path) -> None:
    paths = [written(tmp_path, GOOD, name) for name in ("a.toml", "b.toml")]
    with pytest.raises(WorkerError, match="case_id_twice"):
        load_case_files(paths)


def test_a_digest_changes_with_case_file_and_target(tmp_path: Path) -> None:
    (file,) = load_case_files([written(tmp_path, GOOD)])
    case = file.cases[0]
    digests = {
        file.digest(case, {"ad": "00"}, "worker"),
        file.digest(case, {"ad": "01"}, "worker"),
        file.digest(case, {"ad": "00"}, "station"),
        file.digest(case.model_copy(update={"label": "approve"}), {"ad": "00"}, "worker"),
    }
    assert len(digests) == 4
    assert file.digest(case, {"ad": "00"}, "worker") in digests


def test_templates_are_filled_and_other_braces_stay() -> None:
    template = {"a": ["{x}", 1, None], "b": "{x}{y}{z} {"}
    assert filled(template, {"x": "{y}", "z": "3"}) == {"a": ["{y}", 1, None], "b": "{y}{y}3 {"}
    profile = WorkflowProfile(echo_path="", echo_query={})
    assert "{run_id}" in str(profile.body)


def test_findings_are_read_by_rules_that_know_no_tool() -> None:
    results = [
        {
            "pages": [
                {
                    "page_number": 1,
                    "status": "done",
                    "source": "ocr",
                    "lines": [{"text": "예금자 보호법"}, {"text": None}],
                }
            ]
        },
        {"pages": [{"page_number": 2, "status": "failed"}, "no object"], "other": 3},
    ]
    words = ObserveRule(each="pages.lines", kind="word", about="{word}", words=["예금자보호", "없음"])
    assert observed([*RULES["inspect_pdf"], words], results) == (
        Observed("page_ocr", "1"),
        Observed("word", "예금자보호"),
        Observed("page_failed", "2"),
    )
    assert observed([ObserveRule(each="other.deeper", kind="k", about="a")], results) == ()


def test_labels_and_undone_work_are_read_from_results() -> None:
    assert label_in({"label": "approve"}) == "approve"
    assert label_in({"label": {"label": "reject"}}) == "reject"
    assert label_in({"label": None}) is label_in({}) is None
    assert most_severe(["approve", "reject", "none"]) == "reject"
    assert most_severe(["reject", "invented"]) == "invented"
    assert most_severe([]) is None
    coverage = {"total": 9, "done": 6, "failed": [3], "unreached": [8, 9]}
    assert list(undone_in("t", {"coverage": coverage, "cursor": "c"})) == [
        "t: 1 failed of 9",
        "t: 2 unreached of 9",
        "t: there was still a cursor",
    ]
    assert list(undone_in("t", {"coverage": 3, "unread": None})) == []
    assert list(undone_in("t", {"unread": ["a", "b"]})) == ["t: not read: a; b"]
    assert list(undone_in("t", {"unread": "pages 1,7"})) == ["t: not read: pages 1,7"]


def test_verdicts_while_the_reading_goes_on_are_not_findings() -> None:
    early = {"coverage": {"done": 4}, "phrases": [{"phrase": "가", "state": "cannot_tell"}]}
    late = [
        {"coverage": {"done": 9}, "phrases": [{"phrase": "가", "state": "present"}], "rules": []},
        {
            "coverage": {"done": 9},
            "rules": [
                {"kind": "review_seal", "rule": "seal.number", "verdict": "review"},
                {"kind": "file_defect", "rule": "files.fonts_embedded", "verdict": "not_met"},
                {"kind": "file_defect", "rule": "files.cut_off_allowed", "verdict": "met"},
            ],
        },
    ]
    assert settled("check_phrases", [early, *late]) == late
    assert settled("inspect_pdf", [early, *late]) == [early, *late]
    assert observed(RULES["check_phrases"], late) == (
        Observed("file_defect", "files.fonts_embedded"),
        Observed("review_seal_review", "seal.number"),
    )


def test_a_finding_is_named_by_the_first_field_that_is_there() -> None:
    rule = ObserveRule(each="list", kind="{kind}", about="{rule|phrase}/{nothing}")
    facts = {"list": [{"kind": "{phrase}", "phrase": "가"}, {"kind": "k", "rule": "r", "phrase": "나"}]}
    assert observed([rule], [facts]) == (Observed("{phrase}", "가/{nothing}"), Observed("k", "r/{nothing}"))


def record(case: str, repeat: int, **changes: object) -> RunRecord:
    facts = {
        "case": case,
        "digest": "d",
        "repeat": repeat,
        "run_id": f"{case}-{repeat}",
        "started_at": "",
        "elapsed_s": 1.0,
    }
    return RunRecord(**facts | changes)  # type: ignore[arg-type]


def test_kept_runs_come_back_and_a_line_that_was_cut_does_not_count(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    whole = record("a", 1, findings=(Observed("k", "예금"),), undone=("u",), label="reject")
    store.keep(whole, "여기 \ud800 답")
    store.keep(record("a", 2, code="timeout", detail="late"), "")
    path = tmp_path / "runs.jsonl"
    path.write_bytes(path.read_bytes() + b'\xff\xfe\x00\n[1]\n{"case": "a", "repe')
    again = RunStore(tmp_path)
    assert again.damaged == 3
    assert again.finished("a", "d", 1) == whole
    assert again.finished("a", "other", 1) is None
    again.keep(record("a", 2), "")
    assert [run.code for run in RunStore(tmp_path).kept] == ["", "timeout", ""]
    last = RunStore(tmp_path).finished("a", "d", 2)
    assert last is not None and last.counts
    assert [answer.name for answer in (tmp_path / "answers").iterdir()] == ["a-1.txt"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(WorkerError, match="folder_unwritable"):
        RunStore(tmp_path / "file")


def test_run_ids_are_never_the_same() -> None:
    ids = {new_run_id("a" * 60, 1) for _ in range(100)}
    assert len(ids) == 100
    assert max(map(len, ids)) < 64


def test_a_case_asks_tools_or_a_workflow() -> None:
    with pytest.raises(ValueError, match="calls"):
        Case(id="x", input="  ")
    assert list(ExpectedFinding(kind="k", about="one").each()) == [("k", "one")]
