"""Words in bytes: found under every encoding and however a PDF writes strings."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.media.redact_pdf_fonts import pruned_table
from sam2_mcp_worker.media.redact_words import found_in_bytes, found_in_text, needles, plain, string_bytes

letters = st.text(st.characters(codec="ascii", categories=("Lu", "Ll", "Nd")), min_size=3, max_size=8)
hangul = st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), min_size=2, max_size=6)
words = st.one_of(letters, hangul)


@given(words, st.sampled_from(["utf-8", "utf-16-be", "utf-16-le"]), st.binary(max_size=9))
def test_a_word_is_found_in_every_encoding_wherever_it_starts(word: str, encoding: str, before: bytes) -> None:
    data = b"\xfe\xff" + before.replace(b"\\", b"") + word.encode(encoding) + b"\x00\x01"
    form = plain(word)
    found = found_in_bytes(data, [form])
    # In front of it may stand half a character that takes its first byte along.
    assert found == [form] or found_in_bytes(b"\xfe\xff" + word.encode(encoding), [form]) == [form]


@given(words)
def test_a_word_is_found_inside_and_across_the_strings_of_an_array(word: str) -> None:
    code = word.encode("utf-16-be")
    pieces = b" -20 ".join(b"<" + code[i : i + 2].hex().encode() + b">" for i in range(0, len(code), 2))
    assert found_in_bytes(b"\x80 BT [ " + pieces + b" ] TJ ET", [plain(word)]) == [plain(word)]


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"(Zan) Tj 5 0 Td [(Za\\156) -3 (zi) 4 (bar)] TJ", "Zanzibar"),
        (b"[<5A61> 3 <6E7A6962 61 72>] TJ", "Zanzibar"),
        (b"(Za\\\nnzibar)", "Zanzibar"),
        (b"(Z) Tj 12 0 Td (anz) Tj 9 0 Td (ibar) Tj", "Zanzibar"),
        (b"((Zanzibar))", "zanzibar"),
        ("김철수".encode("cp949"), "김철수"),
        (unicodedata.normalize("NFD", "김철수").encode(), "김철수"),
        ("Ｚａｎｚｉｂａｒ".encode(), "Zanzibar"),
        ("김 철\n수".encode(), "김철수"),
        ("b\xe9b\xe9".encode("latin-1"), "Bébé"),
    ],
)  # fmt: skip
def test_ways_of_writing_a_word(data: bytes, word: str) -> None:
    assert found_in_bytes(data, needles([word])) == needles([word])


def test_what_is_not_there_is_not_found() -> None:
    assert found_in_bytes(b"(Zan) Tj (zebra) Tj <FEFF005A>", needles(["Zanzibar"])) == []
    assert found_in_bytes(b"(zibar) Tj (Zan) Tj", needles(["Zanzibar"])) == []
    assert found_in_bytes(b"", needles(["Zanzibar"])) == []
    assert found_in_bytes(b"Zanzibar", []) == []


def test_text_is_compared_without_spaces_and_case() -> None:
    assert found_in_text("the ZANZI BAR", needles(["zanzibar", "Kenya"])) == ["zanzibar"]


def test_words_too_short_to_mean_anything_are_no_needles() -> None:
    assert needles(["a", " 김 ", "ab", "AB", ""]) == ["ab"]


@given(st.binary(max_size=20))
def test_hexadecimal_strings_are_read_back(data: bytes) -> None:
    assert string_bytes(b"<" + data.hex().encode() + b">") == data


def test_a_table_keeps_the_codes_that_are_shown_in_the_order_of_their_letters() -> None:
    table = (
        b"begincmap\n2 beginbfchar\n<0001> <AE40>\n<0002> <CCA0>\nendbfchar\n"
        b"2 beginbfrange\n<0003> <0005> <0041>\n<0006> <0007> [<C218> <D6C4>]\nendbfrange\nendcmap"
    )
    assert pruned_table(table, {1, 2, 3, 4, 5, 6, 7}) == table
    assert pruned_table(table, {7, 4, 1}) == (
        b"begincmap\n3 beginbfchar\n<0004> <0042>\n<0001> <AE40>\n<0007> <D6C4>\nendbfchar\nendcmap"
    )
    assert pruned_table(table, set()) == b"begincmap\n\nendcmap"
    assert pruned_table(b"no sections", {1}) == b"no sections"
