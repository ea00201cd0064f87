"""Shared files on their way to a scripted worker: what is sent, what is said, and what happens when it goes wrong."""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import upstream as fakes
from tests.fakes.upstream import Behaviour, Call, FakeUpstream
from tests.unit.bridge.mcp_host import PATIENCE_S, Host, threaded_host

from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.files import file_store
from sam2_mcp_bridge.files import uploads as module
from sam2_mcp_bridge.files.shares import CHUNK_BYTES, SharedFile
from sam2_mcp_bridge.files.uploads import META_KEY, Uploads
from sam2_mcp_bridge.transport.transport import Aborted, Exchange
from sam2_mcp_bridge.upstream.upstream import Upstream

LIMIT = 50 * 2**20
LIMIT_HEADER = f"sam2-mcp-max-upload-bytes: {LIMIT}"
HEAD, POST = "HEAD /files", "POST /files"
unknown = fakes.raw(404, "application/json", b"", LIMIT_HEADER)


class Worker(FakeUpstream):
    """Keeps files as the real worker does; `names` are those that came with the uploads, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.files: dict[str, str] = {}
        self.names: list[str] = []
        self.on |= {HEAD: self._about, POST: self._store}

    async def _about(self, call: Call) -> None:
        sha256 = self.files.get(call.path.removeprefix("/files/"))
        etag = f'etag: "{sha256}"'
        await (unknown if sha256 is None else fakes.raw(200, "application/json", b"", LIMIT_HEADER, etag))(call)

    async def _store(self, call: Call) -> None:
        sha256 = hashlib.sha256(call.body).hexdigest()
        self.files[f"file_{sha256[:32]}"] = sha256
        self.names += parse_qs(urlsplit(call.path).query)["name"]
        await fakes.raw(201, "application/json", json.dumps({"sha256": sha256}).encode())(call)

    def arguments(self) -> Any:
        """Those of the last tools/call."""
        return self.received("tools/call")[-1].message["params"]["arguments"]

    def counts(self) -> tuple[int, int]:
        return len(self.received(HEAD)), len(self.received(POST))


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker() as worker:
        yield worker


@pytest.fixture
def share(tmp_path: Path) -> Path:
    folder = tmp_path / "공유 폴더"
    folder.mkdir()
    (folder / "a.png").write_bytes(b"content of a")
    (folder / "b.png").write_bytes(b"content of b")
    return folder


@pytest.fixture
def host(worker: Worker, share: Path) -> Iterator[Host]:
    with threaded_host(worker.url, share=(share,)) as host:
        host.initialize()
        yield host


def handle(content: bytes) -> str:
    return f"file_{hashlib.sha256(content).hexdigest()[:32]}"


def replaced(result: dict[str, Any]) -> list[dict[str, Any]]:
    return result["_meta"][META_KEY]


def lasting(seconds: float = 20.0) -> Exchange:
    return Exchange(time.monotonic() + seconds)


def uploads(worker: Worker, *folders: Path) -> Uploads:
    config = Config(url=worker.url, share=folders)
    return Uploads(config, Upstream(config))


def call(uploads: Uploads, path: Path, exchange: Exchange | None = None) -> Any:
    params = {"name": "echo", "arguments": {"source": str(path)}}
    return uploads.request(exchange or lasting(), "tools/call", params)


def failure(uploads: Uploads, path: Path) -> Failure:
    with pytest.raises(Failure) as caught:
        call(uploads, path)
    return caught.value


# What is replaced


def test_a_shared_file_is_sent_and_its_handle_takes_its_place(host: Host, worker: Worker, share: Path) -> None:
    result = host.call(source=str(share / "a.png"))
    sha256 = hashlib.sha256(b"content of a").hexdigest()
    entry = {
        "argument": "/source",
        "name": "a.png",
        "handle": f"file_{sha256[:32]}",
        "sha256": sha256,
        "size_bytes": 12,
        "uploaded": True,
    }
    assert replaced(result) == [entry]
    assert worker.arguments() == {"source": entry["handle"]}
    (post,) = worker.received(POST)
    assert post.body == b"content of a"
    assert post.headers["content-length"] == "12" and "transfer-encoding" not in post.headers


def test_a_known_file_costs_one_head_and_no_body(host: Host, worker: Worker, share: Path) -> None:
    host.call(source=str(share / "a.png"))
    result = host.call(source=str(share / "a.png"))
    assert [entry["uploaded"] for entry in replaced(result)] == [False]
    assert worker.counts() == (2, 1)


def test_paths_are_found_at_any_depth_and_everything_else_stays(host: Host, worker: Worker, share: Path) -> None:
    a, b = handle(b"content of a"), handle(b"content of b")
    arguments = {
        "list": [str(share / "b.png"), {"x/y~z": (share / "a.png").as_uri()}, 1, None, True, []],
        "text": f"see {share / 'a.png'}",
        "relative": "a.png",
        "outside": "/etc/hostname",
        "beside": f"{share}2/a.png",
        "url": "https://host/a.png",
        str(share / "a.png"): {},
        "": f"{share}/./../{share.name}//a.png",
    }
    result = host.call(**arguments)
    assert worker.arguments() == arguments | {"list": [b, {"x/y~z": a}, 1, None, True, []], "": a}
    assert [(entry["argument"], entry["handle"]) for entry in replaced(result)] == [
        ("/list/0", b),
        ("/list/1/x~1y~0z", a),
        ("/", a),
    ]


def test_the_same_file_twice_in_a_call_costs_one_upload(host: Host, worker: Worker, share: Path) -> None:
    result = host.call(sources=[str(share / "a.png"), (share / "a.png").as_uri()])
    assert [entry["uploaded"] for entry in replaced(result)] == [True, True]
    assert worker.counts() == (1, 1)


def test_arguments_nested_by_the_stations_loader_are_served(host: Host, worker: Worker, share: Path) -> None:
    result = host.call(kwargs={"source": str(share / "a.png")})
    assert worker.arguments() == {"source": handle(b"content of a")}
    assert [entry["argument"] for entry in replaced(result)] == ["/source"]


def test_a_call_without_a_shared_path_is_passed_on_as_it_is(host: Host, worker: Worker) -> None:
    assert "_meta" not in host.call(source="file_0", deep=[{"x": ["/etc/passwd"]}])
    assert host.request("tools/call", {"name": "echo"})["result"]
    assert host.request("tools/call", ["odd"])["result"]
    assert host.request("tools/list")["result"]
    assert worker.counts() == (0, 0)


def test_only_tools_get_files(host: Host, worker: Worker, share: Path) -> None:
    worker.on["prompts/get"] = fakes.result({"messages": []})
    host.request("prompts/get", {"name": "x", "arguments": {"source": str(share / "a.png")}})
    assert worker.received("prompts/get")[0].message["params"]["arguments"] == {"source": str(share / "a.png")}
    assert worker.counts() == (0, 0)


def test_arguments_may_be_nested_deeper_than_the_interpreter_recurses(worker: Worker, share: Path) -> None:
    deep: Any = str(share / "a.png")
    for _ in range(5000):
        deep = [deep]
    sent: list[dict[str, Any]] = []
    copy = uploads(worker, share)._replaced(lasting(), {"deep": deep}, sent)
    for _ in range(5000):
        (copy,) = copy["deep"] if isinstance(copy, dict) else copy
    assert copy == sent[0]["handle"] == handle(b"content of a")


def test_the_hosts_own_arguments_are_not_changed(worker: Worker, share: Path) -> None:
    params = {"name": "echo", "arguments": {"list": [{"source": str(share / "a.png")}]}}
    before = json.dumps(params)
    uploads(worker, share).request(lasting(), "tools/call", params)
    assert json.dumps(params) == before


def at(value: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        value = value[int(name) if isinstance(value, list) else name]
    return value


texts = st.text() | st.sampled_from(["/", "file:///", "~", "a/b", "~1", "/etc/passwd", "file_" + "0" * 32])


def test_exactly_the_shared_paths_are_replaced_and_every_pointer_leads_to_one(worker: Worker, share: Path) -> None:
    these = uploads(worker, share)
    paths = {name: str(share / name) for name in ("a.png", "b.png")}
    leaves = st.none() | st.booleans() | st.integers() | texts | st.sampled_from([*paths.values()])
    values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=20)

    @settings(max_examples=40)  # each makes real requests
    @given(arguments=st.dictionaries(texts, values))
    def check(arguments: Any) -> None:
        sent: list[dict[str, Any]] = []
        before = json.dumps(arguments)
        copy = these._replaced(lasting(), arguments, sent)
        assert json.dumps(arguments) == before
        for entry in sent:
            assert at(arguments, entry["argument"]) == paths[entry["name"]]
            assert at(copy, entry["argument"]) == entry["handle"]
        text = json.dumps(copy)
        for name in paths:
            text = text.replace(handle(f"content of {name[0]}".encode()), json.dumps(paths[name])[1:-1])
        assert text == before and len(sent) == sum(before.count(json.dumps(path)) for path in paths.values())

    check()


def test_what_the_server_says_in_meta_stays(host: Host, worker: Worker, share: Path) -> None:
    worker.on["tools/call"] = fakes.result({"content": [], "isError": True, "_meta": {"theirs": 1}})
    result = host.call(source=str(share / "a.png"))
    assert result["isError"] is True and result["_meta"]["theirs"] == 1 and len(replaced(result)) == 1
    worker.on["tools/call"] = fakes.result({"content": [], "_meta": "odd"})
    assert list(host.call(source=str(share / "a.png"))["_meta"]) == [META_KEY]


@pytest.mark.parametrize(
    "name",
    [
        "그림 1.png",
        "two\nlines.png",
        "%2e%2e%2fsecret",
        "a;b&c=d#e?f+g.png",
        "quotes'\"\\.png",
        "-rf",
        "...",
        "x" * 251 + ".png",
        "가" * 85,
        "\u202egnp.exe",
    ],
)
def test_a_file_with_a_hostile_name_arrives_under_it(host: Host, worker: Worker, share: Path, name: str) -> None:
    (share / name).write_bytes(b"named")
    entry = replaced(host.call(source=str(share / name)))[0]
    assert entry["name"] == name and worker.arguments() == {"source": handle(b"named")}
    assert worker.names == [name]


def test_a_file_whose_name_is_no_text_is_sent(host: Host, worker: Worker, share: Path) -> None:
    name = os.fsdecode(b"\xff.png")
    (share / name).write_bytes(b"named")
    for spelled in (str(share / name), (share / name).as_uri()):
        assert replaced(host.call(source=spelled))[0]["name"] == "\ufffd.png"
    assert worker.names == ["?.png"]


# What is refused


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "No such file or directory"),
        (lambda path: path.mkdir(), "it is a folder"),
        (os.mkfifo, "it is no regular file"),
        (lambda path: path.write_bytes(b""), "it has 0 bytes"),
        (lambda path: path.symlink_to("/etc/hostname"), "a link leads out of the shared folder"),
    ],
)
def test_what_is_no_readable_file_of_the_share_is_refused_with_its_path(
    host: Host, worker: Worker, share: Path, make: Any, says: str
) -> None:
    make(share / "it")
    text = host.failing_call(source=str(share / "it"))
    assert text.startswith(f"[file_refused] the shared file {str(share / 'it')!r} cannot be sent ({says}); ")
    assert worker.counts() == (0, 0) and not worker.received("tools/call")


@pytest.mark.parametrize("name", ["nul\0", "x" * 5000, "d/" * 3000, "\n" * 300])
def test_a_path_that_no_file_can_have_is_refused_in_500_characters(host: Host, share: Path, name: str) -> None:
    text = host.failing_call(source=f"{share}/{name}")
    assert text.startswith("[file_refused] ") and text.endswith("then call again.")


def test_files_of_the_system_are_refused(worker: Worker) -> None:
    assert "it has 0 bytes" in str(failure(uploads(worker, Path("/proc/self")), Path("/proc/self/environ")))
    assert worker.counts() == (0, 0)


def test_a_failed_call_says_what_was_sent_before(host: Host, worker: Worker, share: Path) -> None:
    result = host.call(sources=[str(share / "a.png"), str(share / "none")])
    assert result["isError"] is True and "none" in result["content"][0]["text"]
    assert [entry["argument"] for entry in replaced(result)] == ["/sources/0"]
    worker.on["tools/call"] = fakes.cut_short()
    result = host.call(source=str(share / "b.png"))
    assert result["content"][0]["text"].startswith("[connection_broken] ") and len(replaced(result)) == 1


# What the worker says


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


# Files that change


class Meddling(Exchange):
    """Something else happens to the file whenever the bridge looks whether the call was aborted."""

    def __init__(self, act: Any) -> None:
        super().__init__(time.monotonic() + 20)
        self._act = act

    def pause(self, seconds: float) -> None:
        self._act()
        super().pause(seconds)


def appended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


@pytest.mark.parametrize("act", [appended, lambda path: os.truncate(path, 5), lambda path: path.write_bytes(b"new")])
def test_a_file_that_changes_while_it_is_hashed_is_not_sent(worker: Worker, share: Path, act: Any) -> None:
    (share / "large").write_bytes(bytes(2 * CHUNK_BYTES))
    with pytest.raises(Failure) as caught:
        call(uploads(worker, share), share / "large", Meddling(lambda: act(share / "large")))
    assert caught.value.code == "file_changed" and worker.counts() == (0, 0)


def test_a_file_overwritten_between_hash_and_upload_is_noticed(worker: Worker, share: Path) -> None:
    async def overwrite(call: Call) -> None:
        (share / "a.png").write_bytes(b"content of b")
        await unknown(call)

    worker.on[HEAD] = overwrite
    assert failure(uploads(worker, share), share / "a.png").code == "file_changed"
    assert not worker.received("tools/call")


def test_a_file_truncated_during_the_upload_breaks_it_off(worker: Worker, share: Path) -> None:
    cut = threading.Event()

    async def truncate(call: Call) -> None:
        await call.reader.read(1)
        os.truncate(share / "large", 1)
        while await call.reader.read(2**20):
            pass
        cut.set()

    (share / "large").write_bytes(bytes(LIMIT))
    worker.unread.add(POST)
    worker.on[POST] = truncate
    assert failure(uploads(worker, share), share / "large").code == "file_changed"
    assert cut.wait(PATIENCE_S)


def test_a_file_that_grows_during_the_upload_is_sent_as_it_was(worker: Worker, share: Path) -> None:
    async def grow(call: Call) -> None:
        appended(share / "a.png")
        await unknown(call)

    worker.on[HEAD] = grow
    assert replaced(call(uploads(worker, share), share / "a.png").value)[0]["size_bytes"] == 12
    assert worker.received(POST)[0].body == b"content of a"


def test_a_file_that_cannot_be_read_on_says_so(worker: Worker, share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(descriptor: int, count: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", broken)
    error = failure(uploads(worker, share), share / "a.png")
    monkeypatch.undo()
    assert error.code == "file_refused" and "Input/output error" in str(error)


# Hashes that are remembered


def closed(path: Path) -> SharedFile:
    """As it is, but whoever reads it fails."""
    return SharedFile(str(path), -1, path.stat())


def settle(path: Path) -> None:
    """Give the file a time stamp of long ago, always the same."""
    os.utime(path, (10**9, 10**9))


def test_a_file_that_has_not_changed_for_a_while_is_hashed_once(worker: Worker, share: Path) -> None:
    settle(share / "a.png")
    these = uploads(worker, share)
    call(these, share / "a.png")
    assert these._sha256(lasting(), closed(share / "a.png")) == hashlib.sha256(b"content of a").hexdigest()
    (share / "a.png").write_bytes(b"content of b")
    settle(share / "a.png")
    assert replaced(call(these, share / "a.png").value)[0]["handle"] == handle(b"content of b")


def test_a_file_that_has_just_changed_may_change_again_and_is_not_remembered(worker: Worker, share: Path) -> None:
    these = uploads(worker, share)
    call(these, share / "a.png")
    assert these._hashes == {}


def test_the_memory_of_hashes_is_bounded(worker: Worker, share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KNOWN_HASHES", 2)
    these = uploads(worker, share)
    for number in range(5):
        (share / f"{number}").write_bytes(b"%d" % number)
        settle(share / f"{number}")
        call(these, share / f"{number}")
    assert list(these._hashes) == [closed(share / f"{number}").identity for number in (3, 4)]


# Calls that end early, and calls side by side


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


# What it costs those who share nothing


LOADED = """
import os, sys
from sam2_mcp_bridge.app import Bridge
from sam2_mcp_bridge.config import load
from sam2_mcp_bridge.process.stdio import Wire
Bridge(load(sys.argv[1:]), Wire(*os.pipe()))
names = ("sam2_mcp_bridge.files.uploads", "sam2_mcp_bridge.files.file_store", "_hashlib")
print([name in sys.modules for name in names])
"""


@pytest.mark.parametrize("shared", [False, True])
def test_the_modules_for_uploads_are_loaded_by_those_who_share(share: Path, shared: bool) -> None:
    flags = ["--share", str(share)] if shared else []
    done = subprocess.run([sys.executable, "-c", LOADED, *flags], capture_output=True, text=True, encoding="utf-8")
    assert done.stdout == f"{[shared] * 3}\n", done.stderr


def test_names_shared_with_the_worker_are_the_same() -> None:
    from sam2_mcp_worker.uploads import HANDLE
    from sam2_mcp_worker.web.routes import UPLOAD_LIMIT_HEADER

    assert file_store.UPLOAD_LIMIT_HEADER == UPLOAD_LIMIT_HEADER
    assert HANDLE.match(file_store.handle_of("0123456789abcdef" * 4))
