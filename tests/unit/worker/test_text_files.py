"""Encodings of text files, and kinds of files."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.file_kinds import kind_of
from sam2_mcp_worker.media.text_files import decode_text

KOREAN = "담보,가입금액\r\n사망보험금,1억 5천만원\r\n"
ENCODINGS = ("utf-8", "utf-8-sig", "cp949", "euc-kr", "utf-16", "utf-16-le", "utf-16-be", "utf-32")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_korean_text_is_read_in_every_encoding_that_offices_write(encoding: str) -> None:
    assert decode_text(KOREAN.encode(encoding)).text == KOREAN.replace("\r\n", "\n")


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc",))))
def test_any_text_in_utf_8_comes_back_as_it_was(text: str) -> None:
    decoded = decode_text(text.encode("utf-8-sig"))
    assert (decoded.text, decoded.encoding) == (text, "utf-8")


@pytest.mark.parametrize(
    "data", [b"\x00\x01\x02\x03" * 20, bytes(range(256)), codecs.BOM_UTF8 + b"\xff", b"a\x07b", b"\x80" * 3]
)
def test_what_is_no_text_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(WorkerError, match="not_text"):
        decode_text(data)


def test_the_end_mark_of_dos_and_old_line_ends_go() -> None:
    assert decode_text(b"a\rb\r\nc\n\x1a").text == "a\nb\nc\n"


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (b"%PDF-1.7", "a.csv", "pdf"),
        (b"junk\n%PDF-1.7", "a", "pdf"),
        (b"PK\x03\x04", "a.pdf", "office"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a", "office"),
        (b"\x89PNG\r\n\x1a\n", "a", "image"),
        (b"BM\x00\x00\x01\x00\x00\x00\x00\x00", "a", "image"),
        (b"II*\0", "a", "image"),
        (b"\0\0\0\x18ftypheic", "a", "image"),
        (b"\0\0\0\x18ftypisom", "a", "video"),
        (b"\0\0\0\x18ftypM4A ", "a", "sound"),
        (b"\x1aE\xdf\xa3", "a", "video"),
        (b"RIFF\0\0\0\0AVI LIST", "a", "video"),
        (b"RIFF\0\0\0\0WAVEfmt ", "a", "sound"),
        ((b"G" + bytes(187)) * 3, "a.ts", "video"),
        (b"ID3\x04", "a", "sound"),
        ("BMI 25 이상".encode(), "a.txt", "text"),
        ("담보,금액".encode("cp949"), "a.CSV", "csv"),
        ("담보\t금액".encode(), "a.tsv", "csv"),
        (b"", "", "text"),
    ],
)
def test_the_kind_of_a_file_follows_from_its_first_bytes(head: bytes, name: str, kind: str) -> None:
    assert kind_of(head, name) == kind


@pytest.mark.parametrize(
    "head", [b"<!DOCTYPE html><p>", codecs.BOM_UTF8 + b" <html>", b"<?xml version='1.0'?>", b"{\\rtf1"]
)
def test_markup_is_no_plain_text(head: bytes) -> None:
    with pytest.raises(WorkerError, match="unsupported_file"):
        kind_of(head, "a.txt")
