import os
import runpy
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.upstream import FakeUpstream
from tests.unit.bridge.mcp_host import PATIENCE_S, threaded_host

from sam2_mcp_bridge import __main__ as entry
from sam2_mcp_bridge import app
from sam2_mcp_bridge.actions import Abort
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.process import stdio
from sam2_mcp_bridge.process.stdio import Wire


@contextmanager
def piped_wire() -> Iterator[tuple[Wire, int, int]]:
    """A wire, and the host's writing and reading ends."""
    before = set(threading.enumerate())
    (source, to_bridge), (from_bridge, sink) = os.pipe(), os.pipe()
    try:
        yield Wire(source, sink), to_bridge, from_bridge
    finally:
        os.close(to_bridge)
        # The bridge's reader must have seen the end before its descriptor's number can mean another pipe.
        for thread in set(threading.enumerate()) - before:
            thread.join(PATIENCE_S)
        for fd in (source, sink, from_bridge):
            with suppress(OSError):  # closed by the test
                os.close(fd)


@pytest.fixture
def signals() -> Iterator[None]:
    """Puts back what `run` changes."""
    kept = {name: signal.getsignal(name) for name in app.STOP_SIGNALS}
    yield
    for name, handler in kept.items():
        signal.signal(name, handler)


def test_a_defect_in_the_bridge_costs_one_call_and_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeUpstream() as fake, threaded_host(fake.url) as host:
        host.call()
        with monkeypatch.context() as broken:
            broken.setattr(app.Upstream, "_in_session", lambda *_: 1 / 0)
            assert host.failing_call().startswith("[internal] the bridge failed inside (ZeroDivisionError)")
        assert "isError" not in host.call()


def test_stopping_a_call_that_has_just_ended_is_no_error() -> None:
    with piped_wire() as (wire, _, _):
        bridge = app.Bridge(Config(url="http://127.0.0.1:9/mcp"), wire)
        assert bridge._carry_out([Abort(1)])


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_run_with_0_and_stops_the_call(name: signal.Signals) -> None:
    with FakeUpstream() as fake, piped_wire() as (wire, to_bridge, _):
        fake.on["tools/call"] = fakes.hang()

        def host() -> None:
            os.write(to_bridge, b'{"id":1,"method":"tools/call"}\n')
            (call,) = fake.wait_for("tools/call")
            os.kill(os.getpid(), name)
            assert call.cut.wait(10)

        thread = threading.Thread(target=host)
        thread.start()
        assert app.run(Config(url=fake.url), wire) == 0
        thread.join(PATIENCE_S)


@pytest.mark.usefixtures("signals")
def test_a_host_that_no_longer_reads_ends_run_with_0() -> None:
    with piped_wire() as (wire, to_bridge, from_bridge):
        os.close(from_bridge)
        os.write(to_bridge, b'{"id":1,"method":"ping"}\n')
        assert app.run(Config(url="http://127.0.0.1:9/mcp"), wire) == 0


def test_a_reader_that_ends_while_a_full_pipe_holds_the_writer_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "FULL_PIPE_S", 0.0)
    stuck: list[bool] = []
    source, to_bridge = os.pipe()
    os.close(to_bridge)
    bridge = app.Bridge(Config(url="http://127.0.0.1:9/mcp"), Wire(source, source), lambda: stuck.append(True))
    bridge._read()
    os.close(source)
    assert stuck == [True]


@pytest.mark.usefixtures("signals")
def test_the_main_thread_is_woken_by_a_signal() -> None:
    woken: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: woken.append(number))
    thread = threading.Thread(target=app._interrupt)
    thread.start()
    thread.join(PATIENCE_S)
    assert woken == [signal.SIGTERM]


@pytest.mark.usefixtures("signals")
def test_main_serves_until_the_end_of_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    with piped_wire() as (wire, to_bridge, from_bridge):
        os.write(to_bridge, b'{"id":1,"method":"ping"}\n')
        monkeypatch.setattr(stdio, "claim", lambda: wire)
        answers: list[bytes] = []

        def host() -> None:
            answers.append(os.read(from_bridge, 1000))
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, to_bridge)  # closes the host's end and keeps its number
            os.close(null)

        thread = threading.Thread(target=host)
        thread.start()
        assert entry.main([]) == 0
        thread.join(PATIENCE_S)
        assert answers == [b'{"jsonrpc":"2.0","id":1,"result":{}}\n']


def test_main_says_what_is_wrong_and_ends_with_its_code(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["sam2-mcp", "--profile", "sideways"])
    assert entry.main() == 2
    assert capfd.readouterr().err.startswith("sam2-mcp: --profile: 'sideways' is none of station")


def test_main_without_httpx_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with piped_wire() as (wire, _, _):
        monkeypatch.setattr(stdio, "claim", lambda: wire)
        monkeypatch.delattr("sam2_mcp_bridge.app")
        monkeypatch.setitem(sys.modules, "sam2_mcp_bridge.app", None)
        assert entry.main([]) == 3
    assert "pip install httpx" in capfd.readouterr().err


def test_the_module_can_be_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["sam2-mcp", "--version"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(entry.__file__), run_name="__main__")
    assert caught.value.code == 0 and capsys.readouterr().out.startswith("sam2-mcp ")
