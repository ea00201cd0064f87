import weakref

import pytest

from sam2_mcp_bridge.errors import _WORDS, Failure, code_of_status

VALUES = {
    "mend": "Renew it",
    "proxy": "http://p:1",
    "subject": "read_text",
    "limit_s": 27.0,
    "limit": 10,
    "size": 11,
    "path": "'/share/a.png'",
    "where": "worker:8765",
    "detail": "HTTP 500",
}


@pytest.mark.parametrize("code", _WORDS)
def test_every_failure_names_itself_and_says_what_to_do_next(code: str) -> None:
    text = str(Failure(code, **VALUES))
    what, _, next_step = text.partition("; ")
    assert what.startswith(f"[{code}] ") and next_step.endswith(".") and len(text) <= 400
    failure = Failure(code, **VALUES)
    assert (f"[{code}] {failure.what}", failure.next_step) == (what, next_step)


def test_a_long_detail_is_cut_at_500_characters() -> None:
    text = str(Failure("http_error", where="w", detail="x" * 1000))
    assert len(text) == 500 and text.endswith("…")


class Body(bytearray):
    """What had arrived; known to be gone."""


def test_a_bare_failure_holds_nothing_of_the_answer_that_it_came_from() -> None:
    seen: list[weakref.ref[Body]] = []

    def read() -> None:
        body = Body(b"half an answ")
        seen.append(weakref.ref(body))
        try:
            body.index(b"er")
        except ValueError as error:
            raise Failure("no_answer", **VALUES) from error

    try:
        read()
    except Failure as failure:
        kept = failure.bare()
    assert seen[0]() is None
    assert str(kept).startswith("[no_answer] ")


def test_braces_in_a_detail_are_only_text() -> None:
    assert "{where}" in str(Failure("http_error", where="w", detail="{where}"))


CODES = {
    302: "redirected",
    400: "http_error",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    407: "proxy_refused",
    413: "request_too_large",
    418: "http_error",
    421: "host_not_allowed",
    429: "busy",
    500: "worker_error",
    502: "busy",
    503: "busy",
    504: "busy",
    599: "worker_error",
}


@pytest.mark.parametrize(("status", "code"), CODES.items())
def test_each_http_status_has_its_meaning(status: int, code: str) -> None:
    assert code_of_status(status) == code
