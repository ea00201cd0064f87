"""Shared files on their way to a scripted worker: what is replaced, what is refused, what it costs."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import upstream as fakes
from tests.unit.bridge.files.file_worker import POST, Worker, failure, handle, lasting, replaced, uploads
from tests.unit.bridge.mcp_host import Host

from sam2_mcp_bridge.files import file_store
from sam2_mcp_bridge.files.uploads import META_KEY

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
