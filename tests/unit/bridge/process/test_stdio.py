import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from sam2_mcp_bridge.errors import SetupError
from sam2_mcp_bridge.process.stdio import Wire, claim, complain


@pytest.fixture
def fds() -> Iterator[list[int]]:
    """Room for descriptors; what is in it at the end is closed."""
    opened: list[int] = []
    yield opened
    for fd in opened:
        with suppress(OSError):
            os.close(fd)


def pipe(fds: list[int]) -> tuple[int, int]:
    ends = os.pipe()
    fds.extend(ends)
    return ends


def claimed(stdin_fd: int, stdout_fd: int, stderr_fd: int, fds: list[int]) -> Wire:
    wire = claim(stdin_fd, stdout_fd, stderr_fd)
    fds.extend((wire._source_fd, wire._sink_fd))
    return wire


def test_after_the_claim_only_the_wire_reaches_the_host(fds: list[int]) -> None:
    (stdin, host_out), (host_in, stdout), (log, stderr) = pipe(fds), pipe(fds), pipe(fds)
    wire = claimed(stdin, stdout, stderr, fds)
    os.write(stdout, b"stray print\n")
    wire.write_line("answer")
    os.write(host_out, b"question\n")
    assert os.read(host_in, 100) == b"answer\n"
    assert os.read(log, 100) == b"stray print\n"
    assert os.read(stdin, 100) == b""  # the null device
    assert wire.read() == b"question\n"
    assert not os.get_inheritable(wire._source_fd) and not os.get_inheritable(wire._sink_fd)


def test_a_closed_stderr_is_replaced_so_that_complaints_cannot_reach_the_pipe(fds: list[int]) -> None:
    (stdin, _), (host_in, stdout), (_, stderr) = pipe(fds), pipe(fds), pipe(fds)
    os.close(stderr)
    wire = claimed(stdin, stdout, stderr, fds)
    complain("nobody hears this", stderr)
    wire.write_line("answer")
    assert os.read(host_in, 100) == b"answer\n"


def test_a_closed_stderr_is_replaced_under_its_own_number(fds: list[int]) -> None:
    (lower, _), (stdin, _), (_, stdout), (_, stderr) = pipe(fds), pipe(fds), pipe(fds), pipe(fds)
    os.close(lower)  # the number that the null device would get
    os.close(stderr)
    claimed(stdin, stdout, stderr, fds)
    assert os.write(stderr, b"x") == 1


def test_a_closed_stderr_may_be_the_next_free_number(fds: list[int]) -> None:
    # Run apart, because descriptor numbers are the point: 2 is closed and the lowest free one.
    code = (
        "import os; os.close(2)\n"
        "from sam2_mcp_bridge.process import stdio\n"
        "wire = stdio.claim(); stdio.complain('x'); wire.write_line('a')"
    )
    done = subprocess.run([sys.executable, "-c", code], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    assert done.stdout == b"a\n"


def test_without_standard_input_the_bridge_does_not_start(fds: list[int]) -> None:
    (stdin, _), (_, stdout), (_, stderr) = pipe(fds), pipe(fds), pipe(fds)
    os.close(stdin)
    with pytest.raises(SetupError) as caught:
        claim(stdin, stdout, stderr)
    assert caught.value.exit_code == 3


def test_a_long_line_is_written_whole_through_a_full_pipe(fds: list[int]) -> None:
    from threading import Thread

    host_in, sink = pipe(fds)
    line = "x" * 1_000_000
    writer = Thread(target=Wire(host_in, sink).write_line, args=(line,))
    writer.start()
    got = b""
    while not got.endswith(b"\n"):
        got += os.read(host_in, 65536)
    writer.join()
    assert got == line.encode() + b"\n"


def test_a_broken_source_reads_as_the_end(fds: list[int]) -> None:
    source, _ = pipe(fds)
    os.close(source)
    assert Wire(source, source).read() == b""


def test_a_host_that_no_longer_reads_is_an_error(fds: list[int]) -> None:
    host_in, sink = pipe(fds)
    os.close(host_in)
    with pytest.raises(BrokenPipeError):
        Wire(host_in, sink).write_line("x")


def test_complaints_are_short_lines_and_never_fail(fds: list[int]) -> None:
    log, stderr = pipe(fds)
    complain("보험 \ud800", stderr)
    assert os.read(log, 100) == "sam2-mcp: 보험 ?\n".encode()
    complain("x", 10_000)
