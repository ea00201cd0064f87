"""The public station's faults, each as it was measured: this is how we know that the stand-in is a faithful one."""

import asyncio
import base64
import json
import time

import pytest
from deploy.station.minimal_station.contract import LINE_LIMIT_BYTES, NO_RESPONSE
from tests.unit.station.harness import StationClient

PROGRESS = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}
ROOTS = {"jsonrpc": "2.0", "id": 0, "method": "roots/list"}


def stray(line: bytes) -> list[str]:
    return [base64.b64encode(line).decode()]


async def test_answers_out_of_order_go_to_the_wrong_callers(station: StationClient) -> None:
    session = await station.start()
    tags = ["A", "B", "C"]
    got = await asyncio.gather(*[station.call(session, tag=tag, hold_for=3, reverse=True) for tag in tags])
    assert sorted(got) == tags
    assert sum(tag == answer for tag, answer in zip(tags, got, strict=True)) == 1  # the middle one; two are swapped


async def test_answers_in_request_order_go_to_the_right_callers(station: StationClient) -> None:
    session = await station.start()
    tags = [str(number) for number in range(12)]
    assert await asyncio.gather(*[station.call(session, tag=tag, hold_for=12) for tag in tags]) == tags


async def test_a_late_answer_shifts_every_later_call_by_one(station: StationClient) -> None:
    session = await station.start()
    assert await station.call(session, tag="SLOW", hold_for=2) == f"Error: {NO_RESPONSE}"
    assert [await station.call(session, tag=tag) for tag in ("N2", "N3", "N4")] == ["SLOW", "N2", "N3"]


async def test_a_caller_that_gave_up_still_eats_a_line(station: StationClient) -> None:
    session = await station.start()
    assert await station.call(session, tag="warm") == "warm"
    assert await station.call(session, timeout_s=0.3, tag="A", hold_for=2) == "Error calling tool: "
    assert await station.call(session, tag="B", overtake=True) == "A"


@pytest.mark.parametrize("line", [PROGRESS, ROOTS], ids=["notification", "server_request"])
async def test_a_message_before_the_answer_reads_as_none_and_shifts_the_next_call(
    station: StationClient, line: dict[str, object]
) -> None:
    session = await station.start()
    answer = await station.raw(session, tag="first", stray_base64=stray(json.dumps(line).encode()))
    assert answer == {"success": True, "data": None, "error": None}
    assert await station.call(session, tag="second") == "first"
    assert await station.call(session, tag="third", stray_base64=stray(json.dumps(line).encode())) == "second"
    assert await station.call(session, tag="fourth") == "None"


@pytest.mark.parametrize("line", [b"", b"loading the model"], ids=["blank", "print"])
async def test_a_line_that_is_not_json_is_an_internal_error_and_shifts_the_next_call(
    station: StationClient, line: bytes
) -> None:
    session = await station.start()
    got = await station.call(session, tag="first", stray_base64=stray(line))
    assert got == "Error: Internal error: Expecting value: line 1 column 1 (char 0)"
    assert await station.call(session, tag="second") == "first"


async def test_a_batch_is_an_internal_error(station: StationClient) -> None:
    session = await station.start()
    got = await station.call(session, tag="first", stray_base64=stray(b"[]"))
    assert got == "Error: Internal error: 'list' object has no attribute 'get'"


async def test_a_line_just_under_the_limit_is_delivered(station: StationClient) -> None:
    session = await station.start()
    assert await station.call(session, tag="big", pad_to_bytes=LINE_LIMIT_BYTES - 200) == "big"
    assert await station.call(session, tag="next") == "next"


@pytest.mark.parametrize("fault", ["overlong", "not_utf8"])
async def test_a_line_that_cannot_be_read_ends_the_reader_for_good(station: StationClient, fault: str) -> None:
    session = await station.start()
    overlong = {"pad_to_bytes": LINE_LIMIT_BYTES + 1}
    extra = overlong if fault == "overlong" else {"stray_base64": stray(b'{"x": "\xff"}')}
    assert await station.call(session, tag="first", **extra) == f"Error: {NO_RESPONSE}"
    assert await station.call(session, tag="second") == f"Error: {NO_RESPONSE}"
    assert (await station.info(session))["status"] == "running"
    assert await station.listed() == [session]
    assert (await station.http.delete(f"/api/mcp/sessions/{session}")).status_code == 204
    assert await station.listed() == []


async def test_stderr_lines_are_drained(station: StationClient) -> None:
    session = await station.start()
    assert await station.call(session, tag="noisy", stderr_lines=20_000) == "noisy"


async def test_stderr_without_a_newline_blocks_the_child_for_ever(station: StationClient) -> None:
    session = await station.start()
    assert await station.call(session, tag="mute", stderr_mib_unbroken=64) == f"Error: {NO_RESPONSE}"
    assert await station.call(session, tag="second") == f"Error: {NO_RESPONSE}"
    assert (await station.info(session))["status"] == "running"


async def test_a_process_that_ends_in_a_call_goes_from_no_response_to_not_running_to_not_found(
    station: StationClient,
) -> None:
    session = await station.start()
    assert await station.call(session, tag="last", exit=True) == f"Error: {NO_RESPONSE}"
    assert await station.call(session, tag="next") == f"Error: Session process is not running: {session}"
    assert await station.listed() == []
    assert await station.call(session, tag="next") == f"Error: Session not found: {session}"


async def test_a_refused_initialize_costs_every_later_call_the_whole_wait(short_init_station: StationClient) -> None:
    session = await short_init_station.start(env_vars={"STATION_TEST_INITIALIZE": "refuse"})
    for tag in ("first", "second"):
        started_s = time.monotonic()
        assert await short_init_station.call(session, tag=tag) == tag
        assert time.monotonic() - started_s >= 0.5
        assert (await short_init_station.info(session))["mcp_initialized"] is False


async def test_a_late_initialize_answer_becomes_the_answer_of_a_call(short_init_station: StationClient) -> None:
    session = await short_init_station.start(env_vars={"STATION_TEST_INITIALIZE": "late"})
    assert "protocolVersion" in await short_init_station.call(session, tag="first")
    assert await short_init_station.call(session, tag="second") == "first"
