"""Which texts name a shared file, and that nothing else is ever opened."""

import ntpath
import os
import posixpath
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.bridge.mcp_host import PATIENCE_S

from sam2_mcp_bridge.files import shares as module
from sam2_mcp_bridge.files.shares import Shares, is_below, local_path

SECRET = b"secret"


@pytest.fixture
def share(tmp_path: Path) -> Path:
    """A shared folder beside one that is not; links in it lead to the inside, to the outside and in a circle."""
    return tree(tmp_path)


def tree(base: Path) -> Path:
    folder, outside = base / "share", base / "outside"
    (folder / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_bytes(SECRET)
    (outside / "file").write_bytes(SECRET)
    (folder / "file").write_bytes(b"inside")
    (folder / "sub" / "file").write_bytes(b"inside too")
    links = {
        "in": "file",
        "sub_in": "sub",
        "out": "../outside/secret",
        "sub_out": str(outside),
        "circle": "circle",
        "nowhere": "none",
        "chain": "sub_out/secret",
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    return folder


def content(shares: Shares, path: Path | str) -> bytes:
    with shares.opened(str(path)) as file:
        return b"".join(file.chunks())


def refusal(shares: Shares, path: Path | str) -> str:
    with pytest.raises(OSError) as caught, shares.opened(str(path)):
        pass
    return str(caught.value.strerror)


@pytest.fixture(params=[True, False], ids=["walk", "compare"])
def shares(request: pytest.FixtureRequest, share: Path, monkeypatch: pytest.MonkeyPatch) -> Shares:
    """Both ways to open a file: that of POSIX, and the one for systems without openat."""
    monkeypatch.setattr(module, "_CAN_WALK", request.param)
    return Shares([share])


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/share/a.png", "/share/a.png"),
        ("/share/./b/../a.png", "/share/a.png"),
        ("/share/../etc/passwd", "/etc/passwd"),
        ("//share/a", "/share/a"),
        ("///share/a/", "/share/a"),
        ("/공유/그림 1.png", "/공유/그림 1.png"),
        ("/share/100%.png", "/share/100%.png"),
        ("/share/%2e%2e/a", "/share/%2e%2e/a"),
        ("file:///share/a.png", "/share/a.png"),
        ("FILE:///share/a.png", "/share/a.png"),
        ("file:/share/a.png", "/share/a.png"),
        ("file://localhost/share/a.png", "/share/a.png"),
        ("file://LocalHost/share/a.png", "/share/a.png"),
        ("file:///%EA%B3%B5%EC%9C%A0/a%20b%23c.png", "/공유/a b#c.png"),
        ("file:///share/%2e%2e/etc/passwd", "/etc/passwd"),
        ("file:///share/..%2f..%2fetc", "/etc"),
        ("file:///share/%ff.png", "/share/\udcff.png"),
        ("file:///share/a#1?.png", "/share/a#1?.png"),
        ("file:///share/%00", "/share/\0"),
        ("file:////share/a", "/share/a"),
        ("file://other/share/a", None),
        ("file://localhost.evil/share/a", None),
        ("file://127.0.0.1/share/a", None),
        ("file:share/a", None),
        ("https://host/share/a", None),
        ("share/a", None),
        ("./a", None),
        ("~/a", None),
        (" /share/a", None),
        ("C:\\share\\a.png", None),
        ("", None),
    ],
)
def test_an_absolute_path_or_file_url_is_a_local_path(text: str, path: str | None) -> None:
    assert local_path(text, posixpath) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("C:\\share\\a.png", "C:\\share\\a.png"),
        ("c:/share/./a.png", "c:\\share\\a.png"),
        ("C:\\share\\..\\Windows", "C:\\Windows"),
        ("file:///C:/share/a%20b.png", "C:\\share\\a b.png"),
        ("file:///C|/share/a.png", "C:\\share\\a.png"),
        ("file://localhost/C:/share/a.png", "C:\\share\\a.png"),
        ("file:/C:/share/a.png", "C:\\share\\a.png"),
        ("file:///C%3A/share/D:/a.png", "C:\\share\\D:\\a.png"),
        ("\\\\server\\share\\a.png", "\\\\server\\share\\a.png"),
        ("file://server/share/a.png", None),
        ("C:a.png", None),
        ("share\\a.png", None),
    ],
)
def test_windows_paths_have_drives_and_backslashes(text: str, path: str | None) -> None:
    assert local_path(text, ntpath) == path


def test_below_means_whole_names_and_on_windows_no_case() -> None:
    assert is_below("/share", "/share", posixpath) and is_below("/share/a", "/share", posixpath)
    assert not is_below("/share2/a", "/share", posixpath) and not is_below("/Share/a", "/share", posixpath)
    assert is_below("c:\\SHARE\\a", "C:\\share", ntpath) and is_below("D:\\a", "d:\\", ntpath)
    assert not is_below("C:\\share2", "C:\\share", ntpath)


def test_a_folder_is_known_by_the_name_it_was_given_and_by_its_real_one(share: Path) -> None:
    alias = share.parent / "alias"
    alias.symlink_to(share)
    shares = Shares([alias])
    for folder in (alias, share):
        path = shares.path_in(str(folder / "sub" / ".." / "file"))
        assert path == str(folder / "file") and content(shares, path) == b"inside"
    assert shares.path_in(str(share.parent / "outside" / "secret")) is None
    assert shares.path_in(str(share / ".." / "outside" / "secret")) is None
    assert shares.path_in("file") is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [("file", b"inside"), ("sub/file", b"inside too"), ("in", b"inside"), ("sub_in/file", b"inside too")],
)
def test_files_and_links_that_stay_inside_are_opened(shares: Shares, share: Path, name: str, expected: bytes) -> None:
    assert content(shares, share / name) == expected


@pytest.mark.parametrize("name", ["out", "sub_out/secret", "sub_out", "chain"])
def test_no_link_leads_out(shares: Shares, share: Path, name: str) -> None:
    assert refusal(shares, share / name) == "a link leads out of the shared folder"


def test_a_link_from_one_share_into_another_is_inside(share: Path) -> None:
    assert content(Shares([share, share.parent / "outside"]), share / "out") == SECRET


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none", "No such file or directory"),
        ("nowhere", "No such file or directory"),
        ("file/below", "Not a directory"),
        ("circle", "Too many levels of symbolic links"),
        ("x" * 300, "File name too long"),
        ("nul\0", "no file can have this name"),
        ("\ud800", "no file can have this name"),
        ("sub", "it is a folder"),
        ("", "it is a folder"),
    ],
)
def test_what_cannot_be_opened_says_why(shares: Shares, share: Path, name: str, says: str) -> None:
    assert refusal(shares, share / name) == says


def test_pipes_sockets_and_devices_are_refused_without_waiting(shares: Shares, share: Path) -> None:
    os.mkfifo(share / "pipe")
    assert refusal(shares, share / "pipe") == "it is no regular file"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(share / "socket"))
        assert refusal(shares, share / "socket") == "No such device or address"
    assert refusal(Shares([Path("/dev")]), "/dev/null") == "it is no regular file"


def test_a_file_that_may_not_be_read_is_refused(shares: Shares, share: Path) -> None:
    (share / "file").chmod(0)
    share.parent.chmod(0o755)
    uid = os.geteuid()
    if uid == 0:  # root reads everything
        os.seteuid(65534)
    try:
        assert refusal(shares, share / "file") == "Permission denied"
    finally:
        os.seteuid(uid)


def test_no_descriptor_is_left_behind(shares: Shares, share: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for name in ("sub", "out", "none", "circle", "sub/file/x", "sub/sub/sub", "nul\0", "sub/file"):
        try:
            content(shares, share / name)
        except OSError:
            continue
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_a_link_put_in_after_the_path_was_resolved_is_not_followed(share: Path) -> None:
    for name in ("out", "sub_out/secret"):
        with pytest.raises(OSError):
            module._walk(str(share), Path(name).parts)
        with pytest.raises(OSError):
            module._compare(str(share / name))


def test_a_shared_folder_that_became_a_link_is_not_followed(share: Path) -> None:
    shares = Shares([share])
    share.rename(share.parent / "old")
    share.symlink_to(share.parent / "outside")
    assert refusal(shares, share / "secret") == "a link leads out of the shared folder"
    with pytest.raises(OSError):
        module._walk(str(share), ("secret",))


@contextmanager
def again_and_again(act: Callable[[], None]) -> Iterator[None]:
    """Does `act` in another thread, over and over, while the block runs."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            act()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("name", ["file", "sub/file"])
def test_a_link_swapped_in_all_the_time_never_gives_a_secret_away(share: Path, name: str) -> None:
    """What is swapped is the file itself, or the folder above it; renaming puts the link in place in one step."""
    shares, part = Shares([share]), share / Path(name).parts[0]
    outside = share.parent / "outside" / ("file" if part.is_file() else "")
    real, link = share / "real", share / "link"

    def swap() -> None:
        part.rename(real)
        link.symlink_to(outside)
        link.rename(part)
        part.unlink()
        real.rename(part)

    opened = refused = tries = 0
    until_s = time.monotonic() + PATIENCE_S
    with again_and_again(swap):
        while tries < 3000 or not (opened and refused):
            assert time.monotonic() < until_s
            tries += 1
            try:
                assert content(shares, share / name) != SECRET
                opened += 1
            except OSError:
                refused += 1


NAMES = ["file", "sub", "in", "sub_in", "out", "sub_out", "secret", "outside", "share", "..", ".", "", "circle", "none"]


@given(names=st.lists(st.sampled_from(NAMES), max_size=6), url=st.booleans())
def test_whatever_the_path_nothing_outside_is_read(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], url: bool
) -> None:
    if not (base := tmp_path_factory.getbasetemp() / "any path").exists():
        base.mkdir()
        tree(base)
    folder = base / "share"
    shares = Shares([folder])
    path = shares.path_in(("file://" if url else "") + "/".join([str(folder), *names]))
    if path is None:
        return
    assert Path(path) == folder or folder in Path(path).parents
    try:
        assert content(shares, path) in (b"inside", b"inside too")
    except OSError as error:
        assert error.strerror
