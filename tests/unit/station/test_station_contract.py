"""The station's contract where nothing goes wrong: launch, handshake, ids, routes, stop."""

import asyncio
import json
import os
from pathlib import Path

import anyio
import pytest
from deploy.station import loader
from deploy.station.minimal_station.contract import LINE_LIMIT_BYTES, Timings
from deploy.station.minimal_station.process import substitute_variables
from tests.unit.station.harness import OBEDIENT, StationClient

IGNORES_SIGTERM = """
import json, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    if "id" in json.loads(line):
        print('{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "stubborn"}]}}', flush=True)
"""

STARTS_A_GRANDCHILD = """
import json, subprocess, sys
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], stdout=subprocess.DEVNULL)
for line in sys.stdin:
    if "id" in json.loads(line):
        text = {"type": "text", "text": str(helper.pid)}
        print(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": [text]}}), flush=True)
"""


def test_the_default_figures_are_the_public_stations() -> None:
    timings = Timings()
    assert (timings.request_s, timings.init_s, timings.init_poll_s) == (30.0, 60.0, 0.5)
    assert (timings.terminate_s, timings.kill_s, timings.shutdown_s) == (3.0, 2.0, 10.0)
    assert LINE_LIMIT_BYTES == 16_777_216
    assert (loader.CALL_TIMEOUT_S, loader.FETCH_TIMEOUT_S) == (30.0, 10.0)


async def test_a_session_is_reported_running_before_it_is_known_to_work(station: StationClient) -> None:
    body = {"server_type": "python", "server_command": "/no/such/script.py", "session_name": "n"}
    response = await station.http.post("/api/mcp/sessions", json=body)
    info = response.json()
    assert response.status_code == 201
    assert (info["status"], info["mcp_initialized"], info["session_name"]) == ("running", False, "n")
    assert info["pid"] > 0 and info["error_message"] is None and info["server_args"] == []


async def test_a_missing_working_directory_is_a_500(station: StationClient) -> None:
    body = {"server_type": "python", "server_command": "-c", "server_args": ["1"], "working_dir": "/no/such/place"}
    response = await station.http.post("/api/mcp/sessions", json=body)
    assert response.status_code == 500
    assert "/no/such/place" in response.json()["detail"]


async def test_the_handshake_and_the_ids_are_the_public_stations(station: StationClient) -> None:
    first, second = await station.start(), await station.start()
    reports = [json.loads(await station.call(each, report=True)) for each in (first, second, first)]
    assert (await station.info(first))["mcp_initialized"] is True
    greeting, initialized, call = reports[0]["received"]
    assert greeting == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2024-11-05",
            "capabilities": {"roots": {"listChanged": True}, "sampling": {}},
            "clientInfo": {"name": "mcp-station", "version": "1.0.0"},
        },
    }
    assert initialized == {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert call["method"] == "tools/call" and call["id"] == 1  # the same id as initialize
    assert reports[1]["received"][-1]["id"] == 2  # one counter for all sessions
    assert reports[2]["received"][-1]["id"] == 3


async def test_arguments_take_variables_from_the_environment_and_the_command_does_not(
    station: StationClient, tmp_path: Path
) -> None:
    script = tmp_path / "${NAME}.py"
    script.write_text(OBEDIENT.read_text(encoding="utf-8"), encoding="utf-8")
    session = await station.start(
        "${NAME}-${UNKNOWN_TO_ALL}", command=str(script), env_vars={"NAME": "value"}, working_dir=str(tmp_path)
    )
    report = json.loads(await station.call(session, report=True))
    assert report["argv"] == ["value-${UNKNOWN_TO_ALL}"]
    assert Path(report["cwd"]) == tmp_path.resolve()


def test_a_variable_is_replaced_once_and_never_read_again() -> None:
    assert substitute_variables("${A}${A}", {"A": "${B}", "B": "b"}) == "${B}${B}"


async def test_the_tools_route_gives_the_result_or_a_500(station: StationClient) -> None:
    session = await station.start()
    response = await station.http.get(f"/api/mcp/sessions/{session}/tools")
    assert (response.status_code, response.json()) == (200, {"tools": [{"name": "any"}]})
    assert await loader.list_tools(station.http, session) == [{"name": "any"}]
    assert (await station.http.get("/api/mcp/sessions/absent/tools")).status_code == 500
    assert await loader.list_tools(station.http, "absent") == []


async def test_a_json_rpc_error_is_told_with_its_data_and_message(station: StationClient) -> None:
    session = await station.start()
    failure = {"code": -32602, "message": "no such tool"}
    answer = await station.raw(session, error=failure)
    assert answer == {"success": False, "data": failure, "error": "no such tool"}
    assert await station.call(session, error=failure) == "Error: no such tool"


async def test_the_loader_shows_the_first_text_only_and_everything_when_an_image_comes_first(
    station: StationClient,
) -> None:
    session = await station.start()
    image = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    text = {"type": "text", "text": "facts"}
    assert await station.call(session, result={"content": [text, image], "isError": True}) == "facts"
    assert "QUJD" in await station.call(session, result={"content": [image, text]})


async def test_an_unknown_session_is_named(station: StationClient) -> None:
    assert await station.raw("absent") == {"success": False, "data": None, "error": "Session not found: absent"}
    assert (await station.http.get("/api/mcp/sessions/absent")).status_code == 404
    assert (await station.http.delete("/api/mcp/sessions/absent")).status_code == 404


async def test_a_process_that_ignores_sigterm_is_killed(station: StationClient) -> None:
    session = await station.start(IGNORES_SIGTERM, command="-c")
    assert await station.call(session) == "stubborn"
    pid = (await station.info(session))["pid"]
    assert (await station.http.delete(f"/api/mcp/sessions/{session}")).status_code == 204
    assert not Path(f"/proc/{pid}").exists()


async def test_the_whole_process_group_is_stopped(station: StationClient) -> None:
    session = await station.start(STARTS_A_GRANDCHILD, command="-c")
    grandchild = int(await station.call(session))
    assert os.getsid(grandchild) == (await station.info(session))["pid"]
    assert (await station.http.delete(f"/api/mcp/sessions/{session}")).status_code == 204
    with anyio.fail_after(5):
        while not _has_ended(grandchild):
            await asyncio.sleep(0.01)


def _has_ended(pid: int) -> bool:
    """True too for a process that has ended and that nobody has reaped yet."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


async def test_additional_commands_run_after_the_start(station: StationClient, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    session = await station.start(working_dir=str(tmp_path), additional_commands=["echo ran > pipe"])
    with anyio.fail_after(10):
        assert await asyncio.to_thread(pipe.read_text, encoding="utf-8") == "ran\n"
    assert await station.call(session, tag="A") == "A"


async def test_a_foreign_host_name_is_refused(station: StationClient) -> None:
    assert (await station.http.get("/health")).status_code == 200
    assert (await station.http.get("/health", headers={"Host": "attacker.example"})).status_code == 400


async def test_the_values_of_env_vars_stay_out_of_the_log(
    station: StationClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await station.start(env_vars={"SAM2_MCP_TOKEN_FILE": "/where/it/lies"})
    assert "SAM2_MCP_TOKEN_FILE" in caplog.text
    assert "/where/it/lies" not in caplog.text
