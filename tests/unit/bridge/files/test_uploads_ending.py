"""Uploads of calls that end early, and of calls side by side."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.upstream import Call
from tests.unit.bridge.files.file_worker import HEAD, LIMIT, POST, Worker, call, handle, lasting, replaced, uploads
from tests.unit.bridge.mcp_host import PATIENCE_S, threaded_host

from sam2_mcp_bridge.transport.transport import Aborted, Exchange


@pytest.mark.parametrize("what", [HEAD, POST])
@pytest.mark.parametrize("profile", ["station", "full"])
def test_a_call_that_the_host_cancels_stops_its_upload(worker: Worker, share: Path, what: str, profile: str) -> None:
    worker.on[what] = fakes.hang(with_head=False)
    with threaded_host(worker.url, share=(share,), profile=profile) as host:
        host.initialize()
        host.send("tools/call", {"name": "echo", "arguments": {"source": str(share / "a.png")}}, id=99)
        (call,) = worker.wait_for(what)
        host.send("notifications/cancelled", {"requestId": 99})
        assert call.cut.wait(PATIENCE_S)
        assert host.silent() and not worker.received("tools/call")


def test_an_upload_that_is_not_taken_ends_at_the_deadline(worker: Worker, share: Path) -> None:
    stuck, released = threading.Event(), threading.Event()

    async def read_nothing(call: Call) -> None:
        stuck.set()
        released.wait(PATIENCE_S)
        while await call.reader.read(2**20):
            pass
        call.cut.set()

    (share / "large").write_bytes(bytes(LIMIT))
    worker.unread.add(POST)
    worker.on[POST] = read_nothing
    with threaded_host(worker.url, share=(share,), deadline_s=1.0) as host:
        host.initialize()
        assert host.failing_call(source=str(share / "large")).startswith("[deadline] ")
        assert stuck.is_set()
        released.set()
        assert worker.received(POST)[0].cut.wait(PATIENCE_S)
        assert host.call(source="file_0")


def test_an_upload_cut_at_its_deadline_has_not_failed(worker: Worker, share: Path) -> None:
    worker.on[HEAD] = fakes.hang(with_head=False)
    exchange = lasting(0.1)
    timer = threading.Timer(0.3, exchange.abort)
    timer.start()
    with pytest.raises(Aborted):
        call(uploads(worker, share), share / "a.png", exchange)
    timer.join()


def test_an_aborted_call_stops_hashing(worker: Worker, share: Path) -> None:
    exchange = lasting()
    exchange.abort()
    with pytest.raises(Aborted):
        call(uploads(worker, share), share / "a.png", exchange)
    assert worker.counts() == (0, 0)


def test_parallel_calls_with_the_same_file_share_one_upload(worker: Worker, share: Path) -> None:
    (share / "large").write_bytes(bytes(5 * 2**20))
    these = uploads(worker, share)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: call(these, share / "large").value, range(8)))
    assert sum(replaced(answer)[0]["uploaded"] for answer in answers) == 1
    assert worker.counts() == (8, 1)
    handles = {json.loads(answer["content"][0]["text"])["arguments"]["source"] for answer in answers}
    assert handles == {handle(bytes(5 * 2**20))}


def test_a_call_that_waits_for_the_upload_of_another_can_be_aborted(worker: Worker, share: Path) -> None:
    worker.on[POST] = fakes.hang(with_head=False)
    these, first, second = uploads(worker, share), lasting(), lasting()
    ended: list[type[BaseException]] = []

    def run(exchange: Exchange) -> None:
        try:
            call(these, share / "a.png", exchange)
        except Aborted as error:
            ended.append(type(error))

    threads = [threading.Thread(target=run, args=(exchange,)) for exchange in (first, second)]
    threads[0].start()
    worker.wait_for(POST)
    threads[1].start()
    second.abort()
    threads[1].join(PATIENCE_S)
    assert ended == [Aborted] and worker.counts() == (1, 1)
    first.abort()
    threads[0].join(PATIENCE_S)
    assert ended == [Aborted, Aborted] and these._under_way == set()
