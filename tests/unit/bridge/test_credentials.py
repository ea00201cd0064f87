"""What may stand in token and header files."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_bridge.credentials import MAX_FILE_BYTES, header_file, token_file
from sam2_mcp_bridge.errors import SetupError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


def test_headers_are_lines_of_name_and_value(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbfX-Api-Key: secret  \r\n\r\n# a comment\nCookie:a=b; c=d\nX-Tab:\tone\ttwo\n")
    assert header_file(str(file)) == (("X-Api-Key", "secret"), ("Cookie", "a=b; c=d"), ("X-Tab", "one\ttwo"))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds no header"),
        (b"# only a comment\n \n", "holds no header"),
        (b"X-A: 1\nx-a: hidden", "line 2: the header x-a is there twice"),
        (b"X-A: 1\n hidden", "line 2: must look like Name: value"),
        (b"hidden", "line 1: must look like Name: value"),
        (b": hidden", "line 1: must look like Name: value"),
        (b"X A: hidden", "line 1: must look like Name: value"),
        (b"X-A : hidden", "line 1: must look like Name: value"),
        ("X-\ud55c: hidden".encode(), "line 1: must look like Name: value"),
        ("X-A: hidden\ud55c".encode(), "line 1: the value of X-A must be printable ASCII"),
        (b"X-A:", "line 1: the value of X-A must be printable ASCII characters, at least one"),
        (b"X-A: hidden\rX-Injected: 1", "line 1: the value of X-A must be printable ASCII"),
        (b"X-A: hidden\x00", "line 1: the value of X-A must be printable ASCII"),
        (b"X-A: hidden\x0bX-B: 2", "line 1: the value of X-A must be printable ASCII"),
        (b"Content-Length: 5", "line 1: the header Content-Length is set by the bridge itself"),
        (b"HOST: hidden", "the header HOST is set by the bridge itself"),
        (b"Mcp-Session-Id: hidden", "the header Mcp-Session-Id is set by the bridge itself"),
        (b"Sam2-Mcp-Budget-Ms: 1", "is set by the bridge itself"),
        ("X-A: hidden".encode("utf-16"), "is not UTF-8; in PowerShell write it with Set-Content -Encoding ascii"),
        (b"X-A: " + b"x" * MAX_FILE_BYTES, "is larger than 65536 bytes"),
    ],
)
def test_a_file_with_anything_else_is_refused_by_line_and_never_quoted(file: Path, content: bytes, says: str) -> None:
    file.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        header_file(str(file))
    assert says in str(caught.value) and "hidden" not in str(caught.value)
    assert caught.value.__cause__ is None and (caught.value.__context__ is None or caught.value.__suppress_context__)


@given(st.binary(max_size=60))
def test_whatever_passes_cannot_break_out_of_its_header(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "any-headers"
    file.write_bytes(content)
    try:
        headers = header_file(str(file))
    except ValueError:
        return
    for name, value in headers:
        assert not set(name) & set(" \t\r\n:\x00") and value.isascii() and value == value.strip()
        assert not set(value) & set("\r\n\x00\x0b\x0c")


def test_an_endless_file_is_not_read_to_its_end() -> None:
    with pytest.raises(ValueError, match="larger than"):
        token_file("/dev/zero")


def test_a_token_file_may_have_a_byte_order_mark_and_white_space(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf  word\r\n")
    assert token_file(str(file)) == "word"


def test_a_tilde_of_a_user_who_does_not_exist_is_a_setup_error() -> None:
    with pytest.raises(SetupError, match="cannot read the file ~nobody-of-that-name/token: No such file"):
        token_file("~nobody-of-that-name/token")
