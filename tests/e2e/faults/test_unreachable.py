"""Addresses where no answer can come from, servers that never let the bridge in, and connections that die early."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass

import pytest
import trustme
from tests.e2e.faults.case import IMPATIENT_S, Case, Expect, answered, either, failed
from tests.e2e.faults.lanes import Outcomes, chosen, side_by_side
from tests.e2e.faults.script import MIB, in_pieces, own_json, reset, script, sse, stall
from tests.e2e.faults.script import own_event as own
from tests.e2e.faults.session import PROFILES, session
from tests.e2e.faults.upstream_connection import measured_json_head
from tests.fakes.upstream import JSON, Behaviour, Call, FakeUpstream, head

# All cases of a test run before its first one is asked for.
pytestmark = pytest.mark.timeout(300)

# A refused connection is tried again until the deadline; what it then says depends on which of the two is first.
REFUSED = failed("unreachable", "deadline", "no_contact")


@contextmanager
def nobody() -> Iterator[str]:
    """A port at which nothing listens, and that nobody gets meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"


@contextmanager
def black_hole() -> Iterator[str]:
    """A listener that takes no connection: the kernel drops every further attempt."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = []
        for _ in range(4):  # fill the queue
            client = socket.socket()
            client.setblocking(False)
            with suppress(BlockingIOError):
                client.connect(listener.getsockname())
            waiting.append(client)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            for client in waiting:
                client.close()


@contextmanager
def silent() -> Iterator[str]:
    """Takes the connection and nothing else."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


@contextmanager
def slamming(words: bytes = b"") -> Iterator[str]:
    """Takes each connection and closes it at once, with RST where the request was not read."""
    with socket.create_server(("127.0.0.1", 0), backlog=50) as listener:

        def slam() -> None:
            with suppress(OSError):
                while True:
                    with listener.accept()[0] as connection:
                        connection.sendall(words)

        thread = threading.Thread(target=slam)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def refusing_tls() -> Iterator[str]:
    """A plain server that says so at once, as uvicorn does."""
    with slamming(b"HTTP/1.1 400 Bad Request\r\n\r\nInvalid HTTP request received.") as url:
        yield url.replace("http", "https")


@contextmanager
def tls_server() -> Iterator[FakeUpstream]:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with FakeUpstream(tls=context) as upstream:
        yield upstream


@contextmanager
def plain_on_tls() -> Iterator[str]:
    with tls_server() as upstream:
        yield upstream.url.replace("https", "http")


@contextmanager
def untrusted() -> Iterator[str]:
    with tls_server() as upstream:
        yield upstream.url


@contextmanager
def tls_on_plain() -> Iterator[str]:
    with FakeUpstream() as upstream:
        yield upstream.url.replace("http", "https")


@contextmanager
def named(url: str) -> Iterator[str]:
    yield url


@dataclass(frozen=True)
class Address:
    name: str
    open: Callable[[], AbstractContextManager[str]]
    expect: Expect


ADDRESSES = [
    Address("nothing listens", nobody, REFUSED),
    Address("a black hole", black_hole, REFUSED),
    Address("connected and then silence", silent, failed("deadline", "timeout", "no_contact")),
    Address("connected and then the door", slamming, failed("connection_broken")),
    Address("a name that does not exist", lambda: named("http://no-such-host.invalid/mcp"), REFUSED),
    Address(
        "a name that is too long",
        lambda: named(f"http://{'a' * 70}.invalid/mcp"),
        failed("unreachable", "deadline", "internal"),
    ),
    Address("port 0 of another kind", lambda: named("http://127.0.0.1:1/mcp"), REFUSED),
    Address("an address of nobody", lambda: named("http://255.255.255.255/mcp"), REFUSED),
    Address("an IPv6 address", lambda: named("http://[::1]:1/mcp"), REFUSED),
    Address("http spoken to a TLS port", plain_on_tls, failed("connection_broken", "http_error")),
    Address("https spoken to a plain port", refusing_tls, failed("tls")),
    Address("https spoken to a plain port that waits", tls_on_plain, failed("deadline", "no_contact")),
    Address("a certificate of nobody known", untrusted, failed("certificate")),
]


@pytest.fixture(scope="module")
def addresses(request: pytest.FixtureRequest) -> Outcomes:
    cases = chosen(request, "test_an_address_without_a_server_costs_each_call_its_answer")
    return side_by_side(nullcontext, check_address, cases)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("address", ADDRESSES, ids=lambda address: address.name)
def test_an_address_without_a_server_costs_each_call_its_answer(
    addresses: Outcomes, request: pytest.FixtureRequest, address: Address, profile: str
) -> None:
    addresses.check(request)


def check_address(_: None, address: Address, profile: str) -> None:
    with address.open() as url, session(url, profile, IMPATIENT_S) as host:
        host.begin()
        for _ in range(2):
            tag, result = host.tagged_call("struck")
            assert address.expect.mistake(result, tag) is None
            assert host.quiet()


@pytest.mark.parametrize("profile", PROFILES)
def test_a_server_that_comes_to_where_nobody_was_is_found(profile: str) -> None:
    with nobody() as url:
        port = int(url.rpartition(":")[2].partition("/")[0])
    with session(url, profile, IMPATIENT_S) as host:
        host.begin()
        tag, result = host.tagged_call("struck")
        assert REFUSED.mistake(result, tag) is None
        with FakeUpstream(port) as upstream:
            upstream.on["tools/call"] = sse(own)
            tag, result = host.tagged_call("next")
            assert answered().mistake(result, tag) is None
        tag, result = host.tagged_call("struck")
        assert REFUSED.mistake(result, tag) is None
        with FakeUpstream(port) as upstream:
            upstream.on["tools/call"] = sse(own)
            tag, result = host.tagged_call("next")
            assert answered().mistake(result, tag) is None and host.quiet()


class DoorUpstream(FakeUpstream):
    """Does something else to the next connection before a byte of its request is read."""

    door: Behaviour | None = None

    async def _handle(self, reader: object, writer: object) -> bool:
        door, self.door = self.door, None
        if door is None:
            return await super()._handle(reader, writer)  # type: ignore[arg-type]
        await door(Call("", "", {}, b"", writer, reader))  # type: ignore[arg-type]
        return False


def early(status: int) -> Behaviour:
    """Answer without reading the request, and close."""
    return script(head(status, "text/plain", length=0))


DOORS = [
    Case("closed before the request is read", script(), either("connection_broken")),
    # In the same moment as the connection stands it counts as refused, and is tried again.
    Case("reset before the request is read", script(reset), either("connection_broken")),
    Case("answered with 413 before the request is read", early(413), failed("request_too_large", "connection_broken")),
    Case("answered with 503 before the request is read", early(503), failed("busy", "connection_broken")),
    Case(
        "an answer to a request that was not read",
        script(head(200, JSON, length=2), b"{}"),
        failed("no_answer", "connection_broken"),
    ),
    Case("the request is not read", script(stall), failed("deadline"), deadline_s=IMPATIENT_S),
]


@pytest.fixture(scope="module")
def doors(request: pytest.FixtureRequest) -> Outcomes:
    cases = chosen(request, "test_a_connection_that_ends_before_the_request_is_read_costs_one_call")
    return side_by_side(nullcontext, check_door, cases)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("size", [0, 8 * MIB], ids=["small", "8 MiB"])
@pytest.mark.parametrize("case", DOORS, ids=lambda case: case.name)
def test_a_connection_that_ends_before_the_request_is_read_costs_one_call(
    doors: Outcomes, request: pytest.FixtureRequest, case: Case, size: int, profile: str
) -> None:
    doors.check(request)


def check_door(_: None, case: Case, size: int, profile: str) -> None:
    upstream = DoorUpstream()
    with upstream, session(upstream.url, profile, case.deadline_s) as host:
        upstream.on["tools/call"] = sse(own)
        host.begin()
        tag, result = host.tagged_call("before")
        assert answered().mistake(result, tag) is None
        upstream.door = case.behave
        tag, result = host.tagged_call("struck", ballast="y" * size)
        assert case.expect.mistake(result, tag) is None
        tag, result = host.tagged_call("next")
        assert answered().mistake(result, tag) is None and host.quiet()


async def keep_alive_for_one(call: Call) -> None:
    """A complete answer that promises to keep the connection, which the server then closes."""
    await script(measured_json_head, own_json)(call)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_server_that_closes_the_connections_it_promised_to_keep(profile: str) -> None:
    for keep_alive in (False, True):
        with FakeUpstream(keep_alive=keep_alive) as upstream, session(upstream.url, profile) as host:
            upstream.on["tools/call"] = keep_alive_for_one
            host.begin()
            for _ in range(20):
                tag, result = host.tagged_call("call")
                assert answered().mistake(result, tag) is None
            assert host.quiet()


@pytest.mark.parametrize("profile", PROFILES)
def test_a_server_that_restarts_in_the_middle_of_calls(profile: str) -> None:
    upstream = FakeUpstream()
    upstream.__enter__()
    try:
        with session(upstream.url, profile) as host:
            host.begin()
            for _ in range(5):
                upstream.on["tools/call"] = script(in_pieces(measured_json_head), stall)
                tag = host.start_call("struck")
                upstream.wait_for("tools/call")
                upstream.stop()
                upstream = FakeUpstream(upstream.port)
                upstream.on["tools/call"] = sse(own)
                upstream.__enter__()
                assert either("connection_broken", "no_answer").mistake(host.result(tag), tag) is None
                tag, result = host.tagged_call("next")
                assert answered().mistake(result, tag) is None
            assert host.quiet()
    finally:
        upstream.stop()
