"""What the worker may say to a file, and what becomes of the call."""

import gzip
import hashlib
import json
import tracemalloc
from pathlib import Path

import pytest
from tests.fakes import upstream as fakes
from tests.fakes.upstream import Behaviour
from tests.unit.bridge.files.file_worker import (
    HEAD,
    LIMIT_HEADER,
    POST,
    Worker,
    call,
    failure,
    lasting,
    uploads,
)

from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.files.uploads import Uploads
from sam2_mcp_bridge.upstream.upstream import Upstream


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        (fakes.raw(404, "text/html", b""), "no_files"),
        (fakes.raw(405, "", b""), "no_files"),
        (fakes.raw(200, "text/html", b""), "no_files"),
        (fakes.raw(200, "", b"", LIMIT_HEADER, f'etag: "{"0" * 64}"'), "no_files"),
        (fakes.raw(404, "", b"", "sam2-mcp-max-upload-bytes: many"), "no_files"),
        (fakes.raw(401, "", b""), "unauthorized"),
        (fakes.raw(403, "", b""), "forbidden"),
        (fakes.raw(421, "", b""), "host_not_allowed"),
        (fakes.raw(500, "", b""), "worker_error"),
        (fakes.raw(503, "", b""), "busy"),
        (fakes.raw(302, "", b"", "location: http://elsewhere/"), "redirected"),
    ],
)
def test_no_byte_leaves_for_a_server_that_does_not_expect_files(
    worker: Worker, share: Path, behaviour: Behaviour, code: str
) -> None:
    worker.on[HEAD] = behaviour
    error = failure(uploads(worker, share), share / "a.png")
    assert error.code == code and f"127.0.0.1:{worker.port}" in str(error)
    assert not worker.received(POST) and not worker.received("tools/call")


def test_a_file_above_the_workers_limit_is_not_even_begun(worker: Worker, share: Path) -> None:
    worker.on[HEAD] = fakes.raw(404, "", b"", "sam2-mcp-max-upload-bytes: 11")
    text = str(failure(uploads(worker, share), share / "a.png"))
    assert text.startswith("[file_too_large] ") and "has 12 bytes" in text and "(at most 11)" in text
    assert worker.counts() == (1, 0)


def test_a_limit_that_is_no_number_of_bytes_is_none(worker: Worker, share: Path) -> None:
    worker.on[HEAD] = fakes.raw(404, "", b"", f"sam2-mcp-max-upload-bytes: {'9' * 5000}")
    assert failure(uploads(worker, share), share / "a.png").code == "no_files"
    assert worker.counts() == (1, 0)


def test_the_files_of_an_endpoint_with_a_slash_at_its_end_are_beside_it(worker: Worker, share: Path) -> None:
    config = Config(url=f"{worker.url}/", share=(share,))
    call(Uploads(config, Upstream(config)), share / "a.png")
    assert worker.counts() == (1, 1)


def test_a_packed_answer_to_an_upload_is_read(worker: Worker, share: Path) -> None:
    reply = json.dumps({"sha256": hashlib.sha256(b"content of a").hexdigest()}).encode()
    worker.on[POST] = fakes.raw(201, "application/json", gzip.compress(reply), "content-encoding: gzip")
    assert call(uploads(worker, share), share / "a.png").value["_meta"]


def test_an_endless_answer_to_an_upload_is_not_unpacked(worker: Worker, share: Path) -> None:
    bomb = gzip.compress(bytes(50 * 2**20))
    worker.on[POST] = fakes.raw(201, "application/json", bomb, "content-encoding: gzip")
    sender = uploads(worker, share)
    tracemalloc.start()
    try:
        assert failure(sender, share / "a.png").code == "no_answer"
        assert tracemalloc.get_traced_memory()[1] < 4 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("status", "body", "code", "says"),
    [
        (
            413,
            b'{"detail": {"code": "x", "message": "the limit is 9 bytes"}}',
            "file_too_large",
            "the limit is 9 bytes",
        ),
        (413, b"<html>", "file_too_large", "(HTTP 413)"),
        (413, b'{"detail": "words"}', "file_too_large", "(HTTP 413)"),
        (507, b'{"detail": {"message": "no space on the disk"}}', "worker_error", "HTTP 507: no space on the disk"),
        (401, b"[]", "unauthorized", "HTTP 401"),
        (400, b"", "http_error", "HTTP 400"),
    ],
)
def test_an_upload_that_the_worker_refuses_says_why(
    worker: Worker, share: Path, status: int, body: bytes, code: str, says: str
) -> None:
    worker.on[POST] = fakes.raw(status, "application/json", body)
    error = failure(uploads(worker, share), share / "a.png")
    assert error.code == code and says in str(error)
    assert worker.counts() == (1, 1)


def test_a_refusal_that_comes_before_the_body_is_read_is_understood(worker: Worker, share: Path) -> None:
    (share / "large").write_bytes(bytes(20 * 2**20))
    worker.unread.add(POST)
    worker.on[POST] = fakes.raw(413, "application/json", b'{"detail": {"message": "at most 5 bytes"}}')
    assert "at most 5 bytes" in str(failure(uploads(worker, share), share / "large"))


@pytest.mark.parametrize("what", [HEAD, POST])
@pytest.mark.parametrize("behaviour", [fakes.reset(), fakes.raw(503, "", b"")])
def test_what_may_pass_is_tried_again(worker: Worker, share: Path, what: str, behaviour: Behaviour) -> None:
    worker.on[what] = fakes.in_turn(behaviour, behaviour, worker.on[what])
    assert call(uploads(worker, share), share / "a.png").value["_meta"]
    assert len(worker.received(what)) == 3


def test_what_does_not_pass_is_given_up_after_three_tries(worker: Worker, share: Path) -> None:
    worker.on[POST] = fakes.raw(200, "text/html", b"<html>")
    assert failure(uploads(worker, share), share / "a.png").code == "no_answer"
    assert worker.counts() == (3, 3)


def test_nothing_is_tried_again_beyond_the_deadline(worker: Worker, share: Path) -> None:
    worker.on[HEAD] = fakes.raw(503, "", b"")
    with pytest.raises(Failure):
        call(uploads(worker, share), share / "a.png", lasting(0.1))
    assert worker.counts() == (1, 0)


def test_a_redirected_upload_is_sent_whole_again(worker: Worker, share: Path) -> None:
    target = f"location: http://127.0.0.1:{worker.port}/files/?name=a.png"
    worker.on[POST] = fakes.in_turn(fakes.raw(307, "", b"", target), worker.on[POST])
    call(uploads(worker, share), share / "a.png")
    assert [post.body for post in worker.received(POST)] == [b"content of a"] * 2
