"""Weights come whole and right, or not at all: a real HTTP server on loopback, and what it may do wrong."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sam2_mcp_worker.cli.parser import run
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.models.files import fetch, verify
from sam2_mcp_worker.models.manifest import MODELS, Model, ModelFile, find_model

DATA = bytes(range(256)) * 20_000
Answer = Callable[[BaseHTTPRequestHandler], None]


def whole(handler: BaseHTTPRequestHandler, data: bytes = DATA) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    handler.wfile.write(data)


def cut(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(DATA)))
    handler.end_headers()
    handler.wfile.write(DATA[: len(DATA) // 2])


def changed(handler: BaseHTTPRequestHandler) -> None:
    whole(handler, b"\xff" + DATA[1:])


def endless(handler: BaseHTTPRequestHandler) -> None:
    whole(handler, DATA + DATA)


def absent(handler: BaseHTTPRequestHandler) -> None:
    handler.send_error(404)


class Mirror:
    """A server that answers every path the same way and counts the requests."""

    def __init__(self, answer: Answer) -> None:
        self.paths: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(inner) -> None:
                self.paths.append(inner.path)
                answer(inner)

            def log_message(inner, *_: Any) -> None:
                """Be quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def mirror_of() -> Iterator[Callable[[Answer], Mirror]]:
    mirrors: list[Mirror] = []

    def start(answer: Answer) -> Mirror:
        mirrors.append(Mirror(answer))
        return mirrors[-1]

    yield start
    for mirror in mirrors:
        mirror.close()


def model(address: str = "https://unused.invalid/w.pt") -> Model:
    file = ModelFile("w.pt", address, len(DATA), hashlib.sha256(DATA).hexdigest())
    return Model("tiny", "sam2", (file,), "a licence", "a note")


def test_fetched_weights_are_whole_and_a_second_fetch_costs_nothing(mirror_of: Any, tmp_path: Path) -> None:
    mirror = mirror_of(whole)
    seen: list[tuple[str, int, int]] = []
    assert fetch(model(f"{mirror.url}/w.pt"), tmp_path, progress=lambda *step: seen.append(step)) == 1
    assert (tmp_path / "tiny" / "w.pt").read_bytes() == DATA
    assert seen[-1] == ("w.pt", len(DATA), len(DATA))
    assert fetch(model(f"{mirror.url}/w.pt"), tmp_path) == 0
    assert mirror.paths == ["/w.pt"]
    verify(model(), tmp_path)
    assert model().present(tmp_path)


@pytest.mark.parametrize(
    ("answer", "code"),
    [(cut, "fetch_failed"), (changed, "weights_wrong"), (endless, "weights_wrong"), (absent, "fetch_failed")],
)
def test_what_came_wrong_leaves_nothing_and_says_so(mirror_of: Any, tmp_path: Path, answer: Answer, code: str) -> None:
    with pytest.raises(WorkerError) as caught:
        fetch(model(), tmp_path, mirror=mirror_of(answer).url + "/sub/")
    assert caught.value.code == code
    assert "mirror" in caught.value.next_step
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_wrong_file_is_named_and_replaced(mirror_of: Any, tmp_path: Path) -> None:
    path = tmp_path / "tiny" / "w.pt"
    path.parent.mkdir()
    path.write_bytes(b"\0" * len(DATA))
    with pytest.raises(WorkerError, match="weights_wrong"):
        verify(model(), tmp_path)
    fetch(model(), tmp_path, mirror=mirror_of(whole).url)
    assert path.read_bytes() == DATA


def test_a_host_that_is_not_there_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="fetch_failed"):
        fetch(model(), tmp_path, mirror="http://127.0.0.1:9")


@pytest.mark.parametrize("mirror", ["http://host:port", "http://" + "a" * 70_000, "no address", "file:///etc"])
def test_a_mirror_that_is_no_address_is_named_as_such(tmp_path: Path, mirror: str) -> None:
    with pytest.raises(WorkerError, match="fetch_failed"):
        fetch(model(), tmp_path, mirror=mirror)


def test_two_at_once_both_bring_the_whole_file(mirror_of: Any, tmp_path: Path) -> None:
    mirror = mirror_of(whole)
    with ThreadPoolExecutor(8) as threads:
        fetched = list(threads.map(lambda _: fetch(model(), tmp_path, mirror=mirror.url), range(16)))
    assert sum(fetched) >= 1
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["w.pt"]
    verify(model(), tmp_path)


def test_absent_weights_are_missing_with_the_command_that_brings_them(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="weights_missing") as caught:
        verify(model(), tmp_path)
    assert "models fetch tiny" in caught.value.next_step
    assert not model().present(tmp_path)


def test_more_than_the_disk_holds_is_refused_before_anything_is_asked_for(tmp_path: Path) -> None:
    file = ModelFile("w.pt", "https://unused.invalid/w.pt", 10**18, "0" * 64)
    with pytest.raises(WorkerError, match="no_space"):
        fetch(Model("tiny", "sam2", (file,), "", ""), tmp_path)


FETCH_IN_A_SMALL_DISK = """
import resource, signal, sys
from pathlib import Path
from tests.unit.worker.test_models import model
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.models.files import fetch
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    fetch(model(), Path(sys.argv[1]), mirror=sys.argv[2])
except WorkerError as error:
    print(error.code)
"""


def test_a_disk_that_is_full_in_the_middle_leaves_nothing(mirror_of: Any, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FETCH_IN_A_SMALL_DISK, str(tmp_path), mirror_of(whole).url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "no_space"
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_the_rest_of_a_killed_fetch_goes_with_the_next_and_that_of_a_live_one_stays(
    mirror_of: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    dead, live = folder / ".w.pt.1.aa.part", folder / ".w.pt.2.bb.part"
    for part in (dead, live):
        part.write_bytes(b"half")
    os.utime(dead, (0, 0))
    fetch(model(), tmp_path, mirror=mirror_of(whole).url)
    assert sorted(path.name for path in folder.iterdir()) == [live.name, "w.pt"]


def test_every_manifest_entry_has_an_address_a_size_a_hash_and_a_licence() -> None:
    assert len({model.name for model in MODELS}) == len(MODELS)
    for entry in MODELS:
        assert entry.licence
        assert find_model(entry.name) is entry
        for file in entry.files:
            assert file.address.startswith("https://")
            assert file.address.endswith(file.name)
            assert file.size_bytes > 10**7
            assert len(bytes.fromhex(file.sha256)) == 32


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SAM2_MCP_MODELS_DIR", str(tmp_path))
    return tmp_path


def test_the_list_tells_programs_everything(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in told["models"]] == [model.name for model in MODELS]
    assert {row["state"] for row in told["models"]} == {"absent"}


def test_fetch_without_a_name_is_about_the_model_of_the_settings(
    here: Path, mirror_of: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["models", "fetch", "--mirror", mirror_of(absent).url]) == 1
    assert "sam2.1_hiera_tiny.pt: the host answered 404" in capsys.readouterr().out


def test_verify_finds_a_wrong_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "verify"]) == 1
    assert "weights_missing" in capsys.readouterr().out
    path = here / "sam2.1_hiera_small" / "sam2.1_hiera_small.pt"
    path.parent.mkdir()
    path.write_bytes(b"no weights")
    assert run(["models", "verify"]) == 1
    out = capsys.readouterr().out
    assert "weights_wrong" in out
    assert "sam2.1_hiera_tiny" not in out


def test_an_unknown_model_is_answered_with_the_known_ones(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["models", "fetch", "sam9"]) == 3
    assert "sam2.1_hiera_tiny" in capsys.readouterr().err


def test_weights_that_came_and_do_not_load_are_found_at_once(
    here: Path, mirror_of: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes that are the manifest's and still no network: the engine is started once, for real, and says so."""
    named = replace(model(), name="sam2.1_hiera_tiny")
    monkeypatch.setattr("sam2_mcp_worker.cli.models.MODELS", (named,))
    monkeypatch.setattr("sam2_mcp_worker.segmentation.find_model", lambda _: named)
    assert run(["models", "fetch", "--mirror", mirror_of(whole).url]) == 1
    assert "weights_unsafe" in capsys.readouterr().out
