"""What a host does to the process: pipes that fill, close and break, signals, limits, and too much at once."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest
from tests.e2e.faults.case import IMPATIENT_S, PATIENT_S, answered, failed
from tests.e2e.faults.script import SSE_HEAD, own_event, script, sse, stall, tag_of
from tests.e2e.faults.session import PROFILES, Session, result_of, session
from tests.fakes import upstream as fakes
from tests.fakes.upstream import Call, FakeUpstream, event, response, tool_text
from tests.unit.bridge.mcp_host import PATIENCE_S, STATION_INITIALIZE, Host

Begin = Callable[..., Session]

COMMAND = [sys.executable, "-u", "-m", "sam2_mcp_bridge"]

# The station kills 3 s after it has asked for the end.
END_S = 3.0


@pytest.fixture
def upstream() -> Iterator[FakeUpstream]:
    with FakeUpstream() as fake:
        fake.on["tools/call"] = sse(own_event)
        yield fake


@pytest.fixture(params=PROFILES)
def begin(request: pytest.FixtureRequest, upstream: FakeUpstream) -> Iterator[Begin]:
    """Starts a bridge in each profile and shakes hands."""
    hosts = []

    def start(deadline_s: float = PATIENT_S, **environment: str) -> Session:
        context = session(upstream.url, request.param, deadline_s, **environment)
        hosts.append(context)
        host = context.__enter__()
        host.begin()
        return host

    yield start
    for context in hosts:
        context.__exit__(None, None, None)


def send_call(host: Session, id_value: Any, tag: str, **fields: Any) -> None:
    host.send("tools/call", {"name": "echo", "arguments": {"tag": tag}, **fields}, id=id_value)


def is_right(answer: dict[str, Any], tag: str, *codes: str) -> bool:
    expect = failed(*codes) if codes and answer["result"].get("isError") else answered()
    return expect.mistake(result_of(answer, "echo"), tag) is None


def goes_on(host: Session) -> bool:
    tag, result = host.tagged_call("next")
    return answered().mistake(result, tag) is None and host.quiet()


# Too much at once


def test_five_hundred_requests_at_once(begin: Begin) -> None:
    host = begin(deadline_s=3.0)
    lines = [
        {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "echo", "arguments": {"tag": f"t{n}"}}}
        if n % 5
        else {"jsonrpc": "2.0", "id": n, "method": "ping"}
        for n in range(1000, 1500)
    ]
    host.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    for line in lines:
        answer = host.take(line["id"])
        if line["method"] == "ping":
            assert answer["result"] == {}
        else:
            assert is_right(answer, f"t{line['id']}", "not_started", "deadline")
    assert goes_on(host)


def test_one_id_for_three_requests_in_flight(begin: Begin) -> None:
    host = begin()
    for number in range(3):
        send_call(host, 7, f"t{number}")
    if host.profile == "station":  # which may use an id twice, and never looks at it
        assert all(is_right(host.take(7), f"t{number}") for number in range(3))
    else:
        answers = [host.answer() for _ in range(3)]
        assert [answer["id"] for answer in answers] == [7, 7, 7]
        assert sorted("error" in answer for answer in answers)[0] is False
        assert all(answer["error"]["code"] == -32600 for answer in answers if "error" in answer)
    assert goes_on(host)


# Cancelling


@pytest.mark.parametrize("id_value", [71, "71", ""])
def test_a_running_call_is_cancelled(begin: Begin, upstream: FakeUpstream, id_value: Any) -> None:
    host = begin()
    upstream.on["tools/call"] = fakes.in_turn(script(SSE_HEAD, stall), sse(own_event))
    send_call(host, id_value, "gone")
    (call,) = upstream.wait_for("tools/call")
    host.send("notifications/cancelled", {"requestId": 71 if id_value == "71" else "71"})  # of the other type
    host.send("notifications/cancelled", {"requestId": id_value, "reason": "no longer needed"})
    assert call.cut.wait(PATIENCE_S)
    host.send("notifications/cancelled", {"requestId": id_value})
    assert goes_on(host)


def test_a_waiting_call_is_cancelled_and_does_not_run(begin: Begin, upstream: FakeUpstream) -> None:
    host = begin(SAM2_MCP_MAX_PARALLEL_CALLS="1")
    upstream.on["tools/call"] = fakes.in_turn(script(SSE_HEAD, stall), sse(own_event))
    send_call(host, 1, "running")
    upstream.wait_for("tools/call")
    send_call(host, 2, "waiting")
    host.send("notifications/cancelled", {"requestId": 2})
    host.send("ping", id=3)
    host.send("notifications/cancelled", {"requestId": 1})
    assert host.take(3)["result"] == {}
    assert goes_on(host)
    assert "waiting" not in [tag_of(call) for call in upstream.received("tools/call")]


# A host that does not read


def big(call: Call) -> bytes:
    return event(response(call, tool_text(tag_of(call) + "x" * 300_000)))


def test_a_host_that_reads_late_gets_every_line_in_order(begin: Begin, upstream: FakeUpstream) -> None:
    host = begin()
    upstream.on["tools/call"] = sse(big)
    with host.deaf():
        for number in range(12):
            send_call(host, number, f"t{number}-")
        upstream.wait_for("tools/call", 1)
        host.full_pipe()
    for number in range(12):
        answer = host.take(number)
        assert answer["result"] == tool_text(f"t{number}-" + "x" * 300_000)
    upstream.on["tools/call"] = sse(own_event)
    assert goes_on(host)


def test_a_host_that_does_not_read_for_longer_than_the_deadline_loses_no_line(
    begin: Begin, upstream: FakeUpstream
) -> None:
    host = begin(deadline_s=IMPATIENT_S)
    upstream.on["tools/call"] = sse(big)
    with host.deaf():
        for number in range(5):
            send_call(host, number, f"t{number}-")
        host.full_pipe()
        time.sleep(2 * IMPATIENT_S)  # the fault itself
    for number in range(5):
        result = host.take(number)["result"]
        assert (
            result == tool_text(f"t{number}-" + "x" * 300_000)
            or failed("not_started", "deadline").mistake(result, "") is None
        )
    upstream.on["tools/call"] = sse(own_event)
    assert goes_on(host)


@pytest.mark.parametrize("end", ["stdin closes", "SIGTERM"])
def test_a_bridge_whose_host_does_not_read_can_be_ended(begin: Begin, upstream: FakeUpstream, end: str) -> None:
    host = begin()
    upstream.on["tools/call"] = sse(big)
    with host.deaf():
        for number in range(5):
            send_call(host, number, f"t{number}-")
        host.full_pipe()
        if end == "SIGTERM":
            host.process.terminate()
        else:
            host.close_stdin()
        assert host.process.wait(END_S) == 0


# Pipes that close


def test_stdin_closes_in_the_middle_of_a_call(begin: Begin, upstream: FakeUpstream) -> None:
    host = begin()
    upstream.on["tools/call"] = script(SSE_HEAD, stall)
    send_call(host, 1, "t")
    (call,) = upstream.wait_for("tools/call")
    host.close_stdin()
    assert host.process.wait(END_S) == 0
    assert call.cut.wait(PATIENCE_S)
    assert host.end() == []


def test_half_a_line_before_the_end_is_no_request(begin: Begin, upstream: FakeUpstream) -> None:
    host = begin()
    host.write(b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo"')
    assert host.end() == [] and host.exit_code() == 0
    assert upstream.received("tools/call") == []


def test_stdout_closes_in_the_middle_of_a_call(begin: Begin, upstream: FakeUpstream) -> None:
    host = begin()
    upstream.on["tools/call"] = script(SSE_HEAD, stall)
    send_call(host, 1, "t")
    (call,) = upstream.wait_for("tools/call")
    host.close_stdout()
    host.send("notifications/cancelled", {"requestId": 1})
    host.send("ping", id=2)  # the bridge notices when it has something to write
    assert host.process.wait(PATIENCE_S) == 0
    assert call.cut.wait(PATIENCE_S)
    host.exit_code()
    assert host.stderr == b""


@pytest.mark.parametrize("profile", PROFILES)
def test_nobody_takes_what_the_bridge_complains_about(upstream: FakeUpstream, profile: str) -> None:
    upstream.on["tools/call"] = fakes.in_turn(fakes.raw(500, "text/plain", b""), fakes.reset(), fakes.echo)
    reader, writer = os.pipe()
    env = os.environ | {"SAM2_MCP_URL": upstream.url, "SAM2_MCP_PROFILE": profile}
    pipe = subprocess.PIPE
    process = subprocess.Popen(COMMAND, stdin=pipe, stdout=pipe, stderr=writer, env=env)
    os.close(writer)
    os.close(reader)
    assert process.stdin and process.stdout
    host = Host(cast(BinaryIO, process.stdin), cast(BinaryIO, process.stdout))
    host.initialize()
    assert host.failing_call().startswith("[worker_error]")
    assert host.failing_call().startswith("[connection_broken]")
    assert "isError" not in host.call()
    assert host.silent() and host.end() == [] and process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("data", [b"", b"\n", b"x" * 100_000, b"\n".join([b"{}"] * 3)])
def test_stdin_that_ends_at_once(upstream: FakeUpstream, data: bytes) -> None:
    done = subprocess.run(
        COMMAND,
        input=data,
        capture_output=True,
        env=os.environ | {"SAM2_MCP_URL": upstream.url},
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert all(json.loads(line)["error"] for line in done.stdout.splitlines())


def test_stdin_from_a_file_and_stdout_to_one(upstream: FakeUpstream, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(json.dumps(STATION_INITIALIZE).encode() + b'\n{"id":2,"method":"ping"}\n')
    with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as sink:
        env = os.environ | {"SAM2_MCP_URL": upstream.url}
        done = subprocess.run(COMMAND, stdin=source, stdout=sink, env=env, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0
    assert json.loads((tmp_path / "out").read_bytes().splitlines()[0])["id"] == 1


# Signals


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_call(begin: Begin, upstream: FakeUpstream, number: signal.Signals) -> None:
    upstream.on["initialize"] = fakes.initialize("session")
    upstream.on["tools/call"] = script(SSE_HEAD, stall)
    host = begin()
    send_call(host, 1, "t")
    (call,) = upstream.wait_for("tools/call")
    for _ in range(3):
        host.process.send_signal(number)
    assert host.process.wait(END_S) == 0
    assert call.cut.wait(PATIENCE_S)
    assert upstream.wait_for("DELETE")[0].headers["mcp-session-id"] == "session"
    assert host.end() == []


def test_a_bridge_that_is_killed_leaves_no_call_behind(begin: Begin, upstream: FakeUpstream) -> None:
    host = begin()
    upstream.on["tools/call"] = script(SSE_HEAD, stall)
    send_call(host, 1, "t")
    (call,) = upstream.wait_for("tools/call")
    host.process.kill()
    assert call.cut.wait(PATIENCE_S)


def test_a_bridge_that_stood_still_over_a_deadline_goes_on(begin: Begin, upstream: FakeUpstream) -> None:
    host = begin(deadline_s=IMPATIENT_S)
    upstream.on["tools/call"] = fakes.in_turn(script(SSE_HEAD, stall), sse(own_event))
    send_call(host, 1, "t1")
    (call,) = upstream.wait_for("tools/call")
    host.process.send_signal(signal.SIGSTOP)
    send_call(host, 2, "t2")
    time.sleep(2 * IMPATIENT_S)  # the fault itself
    host.process.send_signal(signal.SIGCONT)
    assert is_right(host.take(1), "t1", "deadline")
    assert is_right(host.take(2), "t2", "not_started", "deadline")
    assert call.cut.wait(PATIENCE_S)
    assert goes_on(host)


def test_an_answer_that_arrived_while_the_bridge_stood_still(begin: Begin, upstream: FakeUpstream) -> None:
    host = begin()
    sent, go = threading.Event(), threading.Event()

    async def when_it_stands(call: Call) -> None:
        while not go.is_set():
            await asyncio.sleep(0.01)
        await sse(own_event)(call)
        sent.set()

    upstream.on["tools/call"] = when_it_stands
    send_call(host, 1, "t1")
    upstream.wait_for("tools/call")
    host.process.send_signal(signal.SIGSTOP)
    go.set()
    assert sent.wait(PATIENCE_S)
    host.process.send_signal(signal.SIGCONT)
    assert is_right(host.take(1), "t1")
    upstream.on["tools/call"] = sse(own_event)
    assert goes_on(host)


# Limits of the process


def test_without_a_free_descriptor_a_call_fails_and_the_next_ones_work(begin: Begin) -> None:
    host = begin(deadline_s=2.0)
    assert goes_on(host)
    before = resource.prlimit(host.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(host.process.pid, resource.RLIMIT_NOFILE, (3, before[1]))
    tag, result = host.tagged_call("struck")
    assert failed("unreachable", "internal", "deadline").mistake(result, tag) is None
    resource.prlimit(host.process.pid, resource.RLIMIT_NOFILE, before)
    assert goes_on(host)


def test_without_memory_a_large_answer_fails_and_the_next_ones_work(begin: Begin, upstream: FakeUpstream) -> None:
    host = begin()
    assert goes_on(host)
    upstream.on["tools/call"] = fakes.in_turn(fakes.text("x" * 30_000_000), sse(own_event))
    limited(host, 24 * 2**20)
    tag, result = host.tagged_call("struck")
    assert failed("internal", "answer_too_large", "out_of_memory").mistake(result, tag) is None
    assert goes_on(host)


def test_without_memory_a_large_line_is_refused_and_the_next_ones_work(begin: Begin) -> None:
    host = begin()
    assert goes_on(host)
    limited(host, 24 * 2**20)
    host.write(json.dumps({"id": 1, "method": "ping", "x": "y" * 30_000_000}).encode() + b"\n")
    assert host.answer()["error"]["code"] in (-32700, -32603)
    assert goes_on(host)


def limited(host: Session, more_bytes: int) -> None:
    """Let the bridge's address space grow by so much and no more."""
    pages = int(Path(f"/proc/{host.process.pid}/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + more_bytes
    resource.prlimit(host.process.pid, resource.RLIMIT_AS, (limit, limit))
