"""What can go wrong, and the words for it.

    SetupError    the bridge cannot start; carries its exit code
    Failure       a request brought no answer; its text is what the agent reads

Knows no protocol: how a failure travels to the host is the ledger's business.
"""

from __future__ import annotations

from typing import Any

EXIT_USAGE = 2
EXIT_STARTUP = 3

# Characters. The same limit as the worker's: hosts show only the first lines of an error.
PUBLIC_TEXT_LIMIT = 500

# What failed with its values; what to do next.
_WORDS = {
    "deadline": "{subject} was not finished after {limit_s:g} s and was stopped; call it again, the worker keeps "
    "finished pages and frames, or ask for less in one call. A file that was being sent starts anew: send a smaller "
    "one.",
    "not_started": "{subject} waited {limit_s:g} s behind other calls of this session and was not started; calls of "
    "one session run one after another: call it again, one at a time.",
    "still_queued": "{subject} waited {limit_s:g} s and was not started; call it again, with fewer calls at once.",
    "no_contact": "{subject} waited {limit_s:g} s for a first answer of the worker and was not started; see that the "
    "worker runs and that SAM2_MCP_URL is its address, then call again.",
    "no_input": "{subject} needs an answer of this host's user, and none came within {limit_s:g} s; call it again.",
    "no_such_input": "{subject} needs {detail} of this host, which does not offer that; use a host that does.",
    "input_refused": "{subject} needs an answer of this host's user and got none ({detail}); call it again and answer.",
    "input_too_large": "{subject} asks this host for more than can be passed on; report it to the server's author.",
    "input_expired": "{subject} no longer waits for this input; call it again without requestState.",
    "input_rounds": "{subject} asked for input more than {limit} times in one call; report it to the server's author.",
    "refused": "the worker refused {subject}: {detail}; correct the name or the arguments and call again.",
    "unreachable": "no connection to the worker at {where} ({detail}); nothing was run. Start the worker "
    "(sam2-mcp-worker serve) or correct SAM2_MCP_URL, then call again.",
    "certificate": "the certificate of {where} was not accepted ({detail}); nothing was run. {mend}, then start a new "
    "session.",
    "client_certificate": "the server at {where} wants a client certificate or refused the one it got ({detail}); "
    "nothing was run. Set SAM2_MCP_CLIENT_CERT and SAM2_MCP_CLIENT_KEY of the bridge, then start a new session.",
    "tls": "TLS with {where} failed ({detail}); nothing was run. Check whether SAM2_MCP_URL must begin with http:// or "
    "https:// and whether the server wants a client certificate (SAM2_MCP_CLIENT_CERT), then start a new session.",
    "proxy_refused": "the proxy {proxy} did not let the request to {where} through ({detail}); check SAM2_MCP_PROXY "
    "with its user and password, or name the host in NO_PROXY, then start a new session.",
    "connection_broken": "the connection to the worker at {where} broke before the answer was complete; it may have "
    "been restarted, and it is not known whether the call ran: call again.",
    "no_answer": "the worker at {where} ended its answer ({detail}) without a result; it may have been stopped in the "
    "middle of the call: call again.",
    "timeout": "the worker at {where} did not answer in time; call again.",
    "not_mcp": "{where} answered with {detail}, which is no MCP message; check SAM2_MCP_URL: another program may "
    "have that address.",
    "answer_too_large": "the answer is larger than {limit} bytes; ask for less in one call: fewer pages or lines, no "
    "inline picture.",
    "handshake_refused": "the server at {where} refused the handshake: {detail}; check SAM2_MCP_URL and its version.",
    "session_lost": "the server at {where} does not keep its session ({detail}); see its log, then call again.",
    "internal": "the bridge failed inside ({detail}); call again, and report it if it fails again.",
    "unauthorized": "the worker at {where} wants a token or refused the one it got ({detail}); set SAM2_MCP_TOKEN_FILE "
    "of the bridge to a file with the worker's token and start a new session.",
    "forbidden": "the worker at {where} does not allow this bridge ({detail}); check the token (SAM2_MCP_TOKEN_FILE) "
    "and SAM2_MCP_ALLOWED_ORIGINS on the worker.",
    "not_found": "{where} serves no MCP at this path ({detail}); check SAM2_MCP_URL: the worker's path is /mcp.",
    "request_too_large": "the worker at {where} does not take a request of this size ({detail}); pass large content as "
    "a file handle or a URL, not inside the arguments.",
    "host_not_allowed": "the worker does not answer to the host name {where} ({detail}); add {where} to "
    "SAM2_MCP_ALLOWED_HOSTS on the worker and restart it.",
    "busy": "the worker at {where} is busy, starting or stopping ({detail}); wait a few seconds, then make the same "
    "call again.",
    "worker_error": "the worker at {where} failed inside ({detail}); make the same call once more, and see the "
    "worker's log if it fails again.",
    "redirected": "{where} points to another place ({detail}), and the token must not follow; set SAM2_MCP_URL to the "
    "final address.",
    "file_refused": "the shared file {path} cannot be sent ({detail}); what is sent are readable regular files of the "
    "shared folders, not linked from there to elsewhere: correct the path or the file, then call again.",
    "file_changed": "the shared file {path} changed while it was sent; wait until it is complete, then call again.",
    "file_too_large": "the shared file {path} has {size} bytes and the worker takes less ({detail}); send a smaller "
    "file, or raise SAM2_MCP_MAX_UPLOAD_BYTES on the worker.",
    "no_files": "the server at {where} takes no files ({detail}), nothing was sent; --share needs a sam2-mcp worker of "
    "this version at SAM2_MCP_URL: to leave paths to another server as they are, start the bridge without --share.",
    "http_error": "the worker at {where} refused the request ({detail}); check SAM2_MCP_URL and the worker's log.",
}
_CODE_OF_STATUS = {
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    407: "proxy_refused",
    413: "request_too_large",
}
_CODE_OF_STATUS |= {421: "host_not_allowed", 429: "busy", 502: "busy", 503: "busy", 504: "busy"}

# The same request may well succeed a moment later.
_TRANSIENT = ("connection_broken", "no_answer", "busy")


class SetupError(Exception):
    """The bridge cannot start with these settings."""

    def __init__(self, text: str, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(text)


class Failure(Exception):
    """A request brought no answer: `[code] what failed; what to do next.`, at most 500 characters.

    Args:
        code: a key of the words above, `values` what they name.
        http_status: status of the response, where there was one.

    What the host shall be told besides, as `_meta` of an answer, may be put into `meta`. `what` and `next_step` are the
    two halves of the text, for those who show them apart.
    """

    def __init__(self, code: str, *, http_status: int | None = None, **values: object) -> None:
        self.code = code
        self.http_status = http_status
        self.transient = code in _TRANSIENT
        self.meta: dict[str, Any] = {}
        what, _, next_step = _WORDS[code].partition("; ")
        self.what, self.next_step = what.format_map(values), next_step.format_map(values)
        text = f"[{code}] {self.what}; {self.next_step}"
        super().__init__(text if len(text) <= PUBLIC_TEXT_LIMIT else text[: PUBLIC_TEXT_LIMIT - 1] + "…")

    def bare(self) -> Failure:
        """Itself, without what led to it, for who keeps it beyond the except clause.

        Its frames hold what had arrived of the answer, up to 32 MiB, and kept by one of them it would be a cycle: a
        bridge was 96 MiB larger after three answers of 50 MB.
        """
        self.__traceback__ = self.__cause__ = self.__context__ = None
        return self


def code_of_status(status: int) -> str:
    """The failure that an HTTP error status stands for."""
    unlisted = "worker_error" if status >= 500 else "redirected" if status < 400 else "http_error"
    return _CODE_OF_STATUS.get(status, unlisted)
