"""The demo: the agent's road from end to end, on real programs, with no key.

leaflet -> worker /files -> station session -> bridge -> worker: get_status, inspect_pdf (cursor to the end), read_text,
where an engine for masks is there segment_image and redact_media, then check_phrases and check_figures
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import httpx

from sam2_mcp_worker.demo.cut_out import CutOut, cut_and_redact
from sam2_mcp_worker.demo.judging import judge
from sam2_mcp_worker.demo.processes import free_port, memory_mb, program, python_command, wait_until_ready
from sam2_mcp_worker.demo.session import DemoResult, Say, StationSession, fetch, upload
from sam2_mcp_worker.errors import WorkerError

PDF_MARK, PDF_MARK_WITHIN_BYTES = b"%PDF-", 1024  # where readers look for it, inspect_pdf among them


def walk(
    source: Path,
    picture: Path | None,
    station: Path,
    out_dir: Path,
    say: Say,
    *,
    cut_out: CutOut | None = None,
    filed: Path | None = None,
    models_dir: Path | None = None,
) -> DemoResult:
    """Run the whole road for one file, one more picture for read_text, an object to cut out and redact, and a document
    to hold the file's figures against.

    `models_dir` is where weights may lie; the worker's other data are the demo's own.

    Raises:
        WorkerError: a program did not start, or a call failed.
    """
    result = DemoResult()
    worker_port, station_port = free_port(), free_port()
    worker_url, station_url = f"http://127.0.0.1:{worker_port}", f"http://127.0.0.1:{station_port}"
    serve = python_command("-m", "sam2_mcp_worker", "serve", "--port", str(worker_port))
    own_data = {"SAM2_MCP_DATA_DIR": str(out_dir / "data"), "SAM2_MCP_HOST": "127.0.0.1"}
    if models_dir is not None:
        own_data["SAM2_MCP_MODELS_DIR"] = str(models_dir)
    with program("worker", serve, out_dir / "worker.log", own_data) as worker:
        say(f"worker starting on {worker_url}")
        result.worker_ready_s = round(
            wait_until_ready("worker", f"{worker_url}/readyz", worker, out_dir / "worker.log"), 2
        )
        result.idle_mb, _ = memory_mb(worker.pid)
        say(f"worker ready after {result.worker_ready_s} s, {result.idle_mb} MB resident with its children")
        # The station starts bridges as `python`: the interpreter that has them must come first on its PATH.
        path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
        run_station = python_command(str(station), "--port", str(station_port), "--log-level", "warning")
        with program("station", run_station, out_dir / "station.log", path) as process:
            wait_until_ready("station", f"{station_url}/health", process, out_dir / "station.log")
            with httpx.Client(base_url=station_url, trust_env=False, timeout=10) as client:
                try:
                    session = open_session(client, worker_url, result, say)
                    handle = _use_tools(session, source, picture, worker_url, out_dir, result, say)
                    if cut_out is not None:
                        cut_and_redact(session, worker_url, cut_out, out_dir, say)
                    judge(session, worker_url, handle, filed, out_dir, say)
                except httpx.HTTPError as error:
                    logs = f"see worker.log and station.log in {out_dir}"
                    raise WorkerError("demo_no_answer", f"no answer: {error}", next_step=logs) from error
        _, result.peak_mb = memory_mb(worker.pid)
    return result


def open_session(client: httpx.Client, worker_url: str, result: DemoResult, say: Say) -> StationSession:
    """A session with a bridge to the worker, and its list of tools."""
    started_s = time.monotonic()
    body = {
        "server_type": "python",
        "server_command": "-m",
        "server_args": ["sam2_mcp_bridge"],
        "env_vars": {"SAM2_MCP_URL": f"{worker_url}/mcp"},
        "session_name": "demo",
    }
    session_id = client.post("/api/mcp/sessions", json=body).raise_for_status().json()["session_id"]
    session = StationSession(client, session_id, result)
    result.tools = [tool["name"] for tool in session.request("tools/list", {})["tools"]]
    result.session_s = round(time.monotonic() - started_s, 2)
    say(f"station session open after {result.session_s} s, tools: {', '.join(result.tools)}")
    return session


def _use_tools(
    session: StationSession,
    source: Path,
    picture: Path | None,
    worker_url: str,
    out_dir: Path,
    result: DemoResult,
    say: Say,
) -> str:
    """Read everything; the handle of the source."""
    status = session.call("get_status", {})
    say(f"get_status: ready={status['ready']}, {status['engines'][0]['identity']}")
    handle = upload(worker_url, source)
    if _is_pdf(source):
        _inspect(session, handle, worker_url, out_dir, result, say)
    else:
        picture = source
    if picture is not None:
        lines = _read(session, handle if picture == source else upload(worker_url, picture), result, say)
        result.lines_of_image = len(lines)
        text = out_dir / "picture.txt"
        text.write_text("".join(f"{line['text']}\n" for line in lines), encoding="utf-8")
        result.files.append(str(text))
    return handle


def _is_pdf(path: Path) -> bool:
    with path.open("rb") as file:
        return PDF_MARK in file.read(PDF_MARK_WITHIN_BYTES)


def _inspect(
    session: StationSession, handle: str, worker_url: str, out_dir: Path, result: DemoResult, say: Say
) -> None:
    arguments: dict[str, Any] = {"source": handle}
    while True:
        facts = session.call("inspect_pdf", arguments)
        coverage = facts["coverage"]
        result.page_count, result.coverage = facts["page_count"], coverage
        result.pages += facts["pages"]
        say(
            f"inspect_pdf: {coverage['done']} of {coverage['total']} pages done, {len(coverage['failed'])} failed, "
            f"{len(coverage['unreached'])} not reached yet, {result.calls_s[-1]} s"
        )
        if not facts.get("cursor"):
            break
        arguments["cursor"] = facts["cursor"]
    result.files.append(fetch(worker_url, facts["report"], out_dir / "report.html"))


def _read(session: StationSession, handle: str, result: DemoResult, say: Say) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    arguments: dict[str, Any] = {"source": handle}
    while True:
        facts = session.call("read_text", arguments)
        lines += facts["lines"]
        coverage = facts["coverage"]
        say(
            f"read_text: {facts['file']}: {coverage['done']} of {coverage['total']} tiles, {len(lines)} lines, "
            f"{len(facts['undetected_ink_boxes_px'])} areas with unread ink, {result.calls_s[-1]} s"
        )
        if not facts.get("cursor"):
            return lines
        arguments["cursor"] = facts["cursor"]


def table(result: DemoResult) -> str:
    """The pages as a table for the terminal."""
    rows = ["page  status  source      characters  smallest pt  unread ink  notes"]
    for page in result.pages:
        smallest = page.get("smallest_text_pt")
        note = page.get("reason") or ("also OCR beside the layer" if page.get("ocr_text") else "")
        rows.append(
            f"{page['page_number']:>4}  {page['status']:6}  {page.get('source') or '-':10}  "
            f"{page.get('characters') or 0:>10}  {smallest if smallest is not None else '-':>11}  "
            f"{page.get('undetected_ink') or 0:>10}  {note}"
        )
    return "\n".join(rows)
