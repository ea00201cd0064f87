"""The command `eval` on real parts: a worker, a station with a bridge to it, a workflow endpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deploy.station.minimal_station.app import create_app
from tests.conftest import RunningWorker
from tests.fakes.documents import document, good_page
from tests.fakes.loopback import serving_app
from tests.fakes.workflow_server import TOKEN, workflow_server

from sam2_mcp_worker.cli import parser

# Longer than the 120 characters that the worker keeps of a name would allow with the run's id before it.
FILE_NAME = f"안내장 {'최종 ' * 15}(2) .pdf"
CASES = """
title = "two pages"
[sources]
ad = { path = "FILE_NAME" }
[tools]
required = ["get_status"]
[[cases]]
id = "two-pages"
input = "심의: {ad}"
label = LABEL
calls = [{ tool = "inspect_pdf", arguments = { source = "{ad}" } }]
findings = [{ kind = "page_text_layer", about = ["1", "2"] }]
"""


class Evaluation:
    """Case files in a folder, and the command that reads them."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.out = folder / "out"
        self._capsys = capsys
        (folder / FILE_NAME).write_bytes(document([good_page("page one"), good_page("page two")]))
        self.write()

    def write(self, *changes: tuple[str, str]) -> None:
        text = CASES.replace("FILE_NAME", FILE_NAME)
        for change in (*changes, ("label = LABEL\n", "")):
            text = text.replace(*change)
        (self.folder / "cases.toml").write_text(text, encoding="utf-8")

    def run(self, *arguments: str) -> tuple[int, dict[str, Any], str]:
        """Exit code, score, and what was said on stderr."""
        command = ["eval", str(self.folder / "cases.toml"), "--out", str(self.out), "--json", *arguments]
        code = parser.run(command)
        said = self._capsys.readouterr()
        return code, json.loads(said.out) if said.out else {}, said.err

    def kept(self) -> list[dict[str, Any]]:
        lines = (self.out / "runs.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def evaluation(
    tmp_path: Path, worker: RunningWorker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Evaluation:
    token = tmp_path / "token"
    token.write_text(worker.token, encoding="utf-8")
    monkeypatch.setenv("SAM2_MCP_TOKEN_FILE", str(token))
    return Evaluation(tmp_path, capsys)


def test_a_worker_is_evaluated_and_what_is_finished_is_not_repeated(
    evaluation: Evaluation, worker: RunningWorker
) -> None:
    code, score, said = evaluation.run("--url", worker.base_url, "--repeats", "2", "--check")
    assert (code, score["flawless"], score["scored"]) == (0, True, 2)
    assert score["recall"]["hits"] == score["recall"]["total"] == 4
    assert "two-pages 2/2" in said
    assert "two-pages" in (evaluation.out / "report.html").read_text(encoding="utf-8")
    first = evaluation.kept()
    code, score, said = evaluation.run("--url", worker.base_url, "--repeats", "3")
    assert (code, score["scored"]) == (0, 3)
    assert evaluation.kept()[:2] == first and len(evaluation.kept()) == 3
    assert "two-pages 1/3" not in said


def test_what_is_not_as_expected_shows_in_the_exit_code_of_a_check_only(
    evaluation: Evaluation, worker: RunningWorker
) -> None:
    evaluation.write(("LABEL", '"reject"'))
    assert evaluation.run("--url", worker.base_url)[0] == 0
    code, score, _ = evaluation.run("--url", worker.base_url, "--check")
    assert code == 1
    assert score["confusion"] == [{"expected": "reject", "given": "no label", "runs": 1}]


def test_a_missing_tool_and_a_tools_error_are_refused_and_end_with_one(
    evaluation: Evaluation, worker: RunningWorker
) -> None:
    evaluation.write(("get_status", "guess_verdict"))
    code, score, _ = evaluation.run("--url", worker.base_url)
    assert (code, score["refused"]) == (1, {"tools_missing": 1})
    (evaluation.folder / FILE_NAME).write_bytes(b"no pdf at all, but some bytes")
    evaluation.write()
    code, score, said = evaluation.run("--url", worker.base_url)
    assert (code, score["refused"], score["recall"]) == (1, {"target_error": 1}, None)
    assert "inspect_pdf: [" in said


def test_the_station_the_bridge_and_the_worker_are_evaluated_as_one_road(
    evaluation: Evaluation, worker: RunningWorker
) -> None:
    with serving_app(create_app()) as port:
        code, score, said = evaluation.run("--url", worker.base_url, "--station", f"http://127.0.0.1:{port}", "--check")
    assert (code, score["flawless"]) == (0, True), said
    assert "through the station" in score["target"]


def test_a_workflow_gets_the_handle_and_the_token_from_the_environment(
    evaluation: Evaluation, worker: RunningWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation.write(("label = LABEL", 'label = "conditional"\nuses = ["check_phrases"]'))
    monkeypatch.setenv("SAM2_MCP_EVAL_TOKEN", TOKEN)
    with workflow_server() as fake:
        code, score, said = evaluation.run("--url", worker.base_url, "--workflow", fake.url, "--repeats", "2")
        assert (code, score["agreement"]["hits"], score["recall"]["hits"]) == (0, 2, 0), said
        assert fake.tokens == {f"Bearer {TOKEN}"}
        assert all("심의: file_" in body["input_data"] for body in fake.bodies)
    written = "".join(path.read_text(encoding="utf-8") for path in evaluation.out.rglob("*") if path.is_file())
    assert TOKEN not in written and worker.token not in written


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--workflow", "http://127.0.0.1:9", "--station", "http://127.0.0.1:9"], "eval_two_targets"),
        (["--only", "nobody"], "case_unknown"),
        (["--workflow", "https://somebody:secret@127.0.0.1:9"], "eval_url"),
        (["--station", "127.0.0.1:9"], "eval_url"),
        (["--workflow", "http://127.0.0.1:9"], "workflow_needs_url"),
        (["--url", "http://127.0.0.1:9", "--station", "http://127.0.0.1:9"], "token_needs_file"),
    ],
)
def test_mistakes_are_one_clear_line(
    evaluation: Evaluation, arguments: list[str], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text == "token_needs_file":
        monkeypatch.setenv("SAM2_MCP_TOKEN", "secret")
    code, _, said = evaluation.run(*arguments)
    assert code == 3
    assert text in said and "secret" not in said


def test_sources_that_are_not_there_and_unknown_demos_are_named(evaluation: Evaluation) -> None:
    (evaluation.folder / FILE_NAME).unlink()
    assert "source_unreadable" in evaluation.run()[2]
    evaluation.write((f'path = "{FILE_NAME}"', 'demo = "film"'))
    assert "demo_unknown" in evaluation.run()[2]


def test_cases_for_a_workflow_only_are_left_out_and_told(evaluation: Evaluation) -> None:
    evaluation.write(('calls = [{ tool = "inspect_pdf", arguments = { source = "{ad}" } }]', ""))
    code, _, said = evaluation.run()
    assert code == 3
    assert "left out" in said and "no_case_fits" in said
