"""The worker's commands, run as programs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image
from tests.conftest import RunningWorker
from tests.e2e.sam2_worker import environment
from tests.fakes.documents import document, good_page
from tests.models import OnnxPair

from sam2_mcp_worker.demo.processes import free_port, wait_until_ready

WORKER = [sys.executable, "-m", "sam2_mcp_worker"]


def run(*arguments: str, timeout_s: float = 100, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*WORKER, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout_s,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"} | environment,
    )


@pytest.fixture
def leaflet(tmp_path: Path) -> Path:
    path = tmp_path / "two.pdf"
    path.write_bytes(document([good_page("page one"), good_page("page two")]))
    return path


def test_call_uploads_the_file_and_prints_the_result(leaflet: Path, tmp_path: Path) -> None:
    done = run(
        "call",
        "inspect_pdf",
        '{"source": "{file0}"}',
        "--file",
        str(leaflet),
        "--json",
        "--all",
        SAM2_MCP_DATA_DIR=str(tmp_path / "d"),
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["coverage"]["done"] == 2
    assert "of 2 pages" in done.stderr


def test_call_saves_what_the_result_points_to_and_overwrites_nothing(
    leaflet: Path, worker: RunningWorker, tmp_path: Path
) -> None:
    saved = tmp_path / "out"
    (tmp_path / "file").write_bytes(b"")
    command = ["call", "redact_media", '{"source": "{file0}", "phrases": ["one"]}', "--file", str(leaflet), "--json"]
    command += ["--url", worker.base_url, "--all", "--save"]
    for count in (1, 2):
        done = run(*command, str(saved), SAM2_MCP_TOKEN=worker.token)
        assert done.returncode == 0, done.stderr
        files = list(saved.iterdir())
        assert len(files) == count
        assert all(path.read_bytes().startswith(b"%PDF-") for path in files)
    refused = run(*command, str(tmp_path / "file"), SAM2_MCP_TOKEN=worker.token)
    assert refused.returncode == 3
    assert "folder_unwritable" in refused.stderr


def test_call_uses_a_worker_that_runs_already(worker: RunningWorker) -> None:
    done = run("call", "get_status", "--json", "--url", f"{worker.base_url}/mcp", SAM2_MCP_TOKEN=worker.token)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ready"] is True


def test_a_tools_error_is_on_stderr_and_in_the_exit_code(worker: RunningWorker) -> None:
    done = run("call", "read_text", '{"source": "nowhere.png"}', "--url", worker.base_url, SAM2_MCP_TOKEN=worker.token)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "[source_not" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["call", "get_status", "not json"], "arguments_not_json"),
        (["call", "get_status", "[1]"], "arguments_not_json"),
        (["call", "get_status", "--url", "http://127.0.0.1:9"], "worker_unreachable"),
        (["call", "inspect_pdf", "{}", "--file", "/none.pdf", "--url", "http://127.0.0.1:9"], "file_unreadable"),
    ],
)
def test_mistakes_on_the_command_line_are_one_clear_line(arguments: list[str], text: str) -> None:
    done = run(*arguments)
    assert done.returncode == 3
    assert text in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("environment", "text"),
    [
        ({"SAM2_MCP_HOST": "0.0.0.0"}, "token_required"),
        ({"SAM2_MCP_TESSDATA_DIR": "/nowhere"}, "language_data_missing"),
        ({"SAM2_MCP_TOKEN_FILE": "/nowhere"}, "token_file_unreadable"),
        ({"SAM2_MCP_PORT": "many"}, "SAM2_MCP_PORT"),
        ({"SAM2_MCP_CALL_BUDGET_S": "-1"}, "SAM2_MCP_CALL_BUDGET_S"),
    ],
)
def test_serve_refuses_a_bad_setting_before_it_listens(environment: dict[str, str], text: str) -> None:
    done = run("serve", **environment)
    assert done.returncode == 3
    assert text in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["serve"], ["call", "get_status"]])
def test_a_data_directory_that_cannot_be_written_is_one_line_that_names_the_setting(
    arguments: list[str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    done = run(*arguments, SAM2_MCP_DATA_DIR=str(tmp_path / "file" / "data"))
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1
    assert "[data_dir_unwritable]" in done.stderr
    assert "set SAM2_MCP_DATA_DIR" in done.stderr


def test_a_port_that_is_taken_ends_serve_with_3(worker: RunningWorker, tmp_path: Path) -> None:
    done = run("serve", "--port", worker.base_url.rsplit(":", 1)[1], SAM2_MCP_DATA_DIR=str(tmp_path))
    assert done.returncode == 3


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_demo_accounts_for_all_nine_pages_and_cuts_out_an_object_through_the_station(
    tmp_path: Path, onnx_pair: OnnxPair
) -> None:
    done = run("demo", "--json", "--out", str(tmp_path / "out"), timeout_s=150, **onnx_pair.environment())
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert sorted(page["page_number"] for page in result["pages"]) == list(range(1, 10))
    assert result["coverage"] == {"total": 9, "done": 9, "failed": [], "unreached": []}
    assert max(result["calls_s"]) < 27
    assert "든든건강보험" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert result["cut_out"]["engine"].startswith("sam-onnx/")
    assert result["cut_out"]["redaction"] == "done"
    # Judged at the end: the limit that is out of date, and the one figure that was filed otherwise.
    assert result["label"] == "reject"
    assert [rule["rule"] for rule in result["rules"] if rule["verdict"] == "not_met"] == ["deposit_limit_50m_claims"]
    assert sum(phrase["state"] == "present" for phrase in result["phrases"]) >= 3
    [wrong] = [figure for figure in result["figures"] if figure["state"] == "mismatch"]
    assert (wrong["text"], wrong["evidence"]["text"]) == ("29,500원", "29,900원")
    for report in ("phrases.html", "figures.html"):
        assert "data:image/jpeg" in (tmp_path / "out" / report).read_text(encoding="utf-8")


def test_doctor_finds_what_is_there_and_what_is_missing(tmp_path: Path) -> None:
    good = run("doctor", "--json", SAM2_MCP_DATA_DIR=str(tmp_path), SAM2_MCP_PORT=str(free_port()))
    assert {finding["state"] for finding in json.loads(good.stdout)} == {"ok"}, good.stdout
    assert good.returncode == 0
    bad = run("doctor", "--json", SAM2_MCP_DATA_DIR=str(tmp_path), SAM2_MCP_OCR_LANGUAGES="xyz")
    states = {finding["check"]: finding["state"] for finding in json.loads(bad.stdout)}
    assert states["language data"] == states["processes"] == "failed"
    assert bad.returncode == 1


def test_serve_stops_on_sigterm_and_leaves_no_child(tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "log"
    with log.open("wb") as output:
        environment = os.environ | {"SAM2_MCP_DATA_DIR": str(tmp_path / "d")}
        process = subprocess.Popen(
            [*WORKER, "serve", "--port", str(port)], stdout=output, stderr=output, env=environment
        )
    wait_until_ready("worker", f"http://127.0.0.1:{port}/readyz", process, log)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
    assert len(children) >= 3
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert not [child for child in children if Path(f"/proc/{child}").exists()]
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False)


def test_without_the_workers_packages_one_line_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['pydantic_settings'] = None\n"
        "from sam2_mcp_worker.__main__ import main; sys.exit(main([]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert done.returncode == 3
    assert "pip install 'sam2-mcp[worker]'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_call_from_the_shell_waits_for_the_network_before_its_time_begins(tmp_path: Path) -> None:
    picture = tmp_path / "grey.png"
    Image.new("RGB", (64, 48), "grey").save(picture)
    # Three seconds: torch alone takes longer to import, and the network to load.
    brief = environment(tmp_path / "data") | {"SAM2_MCP_CALL_BUDGET_S": "3"}
    arguments = {"source": "{file0}", "boxes": [[8, 8, 40, 40]], "quality": "fast"}
    done = run("call", "segment_image", json.dumps(arguments), "--file", str(picture), "--json", timeout_s=100, **brief)
    assert done.returncode == 0, done.stderr
    assert "notes" not in json.loads(done.stdout)
