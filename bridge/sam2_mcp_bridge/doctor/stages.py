"""The stages of `sam2-mcp --check`, from the name of the host to a picture that was read.

Each is a method that returns what it found, or raises. They run in the order of `STAGES` and leave what they learned
to those after them. Requests are probe.py's business.
"""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sam2_mcp_bridge.actions import OWN_HOST, Refusal, Result, as_object
from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.doctor.probe import Probe
from sam2_mcp_bridge.errors import Failure
from sam2_mcp_bridge.host.framing import decode, encode
from sam2_mcp_bridge.transport.lean_httpx import httpx
from sam2_mcp_bridge.transport.transport import Transport
from sam2_mcp_bridge.upstream.modern import ModernSession, discovered
from sam2_mcp_bridge.upstream.responses import MAX_BODY_BYTES, SessionLost, messages, refusal
from sam2_mcp_bridge.upstream.rpc import message_headers
from sam2_mcp_bridge.upstream.session import Session, initialize_params, initialized
from sam2_mcp_bridge.upstream.sse import EventParser

# Name and longest time in seconds. All together are bounded as well: who asks for a diagnosis waits for half a minute.
STAGES = {
    "settings": 5.0,
    "name": 5.0,
    "tcp": 5.0,
    "tls": 5.0,
    "http": 6.0,
    "eras": 6.0,
    "initialize": 5.0,
    "tools": 8.0,
    "status": 10.0,
    "image": 15.0,
}

# A server on TLS 1.3 that misses our certificate says so, or just closes, in the first moments after the handshake.
CLIENT_CERTIFICATE_PATIENCE_S = 0.3
# A worker that has just been started loads its engines for some seconds.
READY_PAUSE_S = 0.5
EXPIRES_SOON_DAYS = 14
MAX_PAGES = 50
WIDTH_PX, HEIGHT_PX = 160, 48

_ASK_AUTHOR = "report it to the author of the server: hosts cannot use it as it is"
_WRONG_SERVER = "check SAM2_MCP_URL: it must be the streamable HTTP endpoint of an MCP server"


class Skipped(Exception):
    """This stage does not apply; the text says why."""


class Trouble(Exception):
    """This stage failed.

    Args:
        mend: what to do about it.
    """

    def __init__(self, what: str, mend: str) -> None:
        self.mend = mend
        super().__init__(what)


class Stages:
    """One check. Every stage may raise Trouble, Failure or Skipped, and ends by the deadline that the probe has."""

    def __init__(self, load: Callable[[], Config]) -> None:
        self.probe = Probe()
        self._load = load
        self._addresses: list[Any]
        self._session: Session
        self._tools: dict[str, dict[str, Any]] = {}

    def settings(self) -> str:
        """Settings and the files that they name."""
        config = self._load()
        self.probe.transport = Transport(config)
        # What is in a query is a key at times, and reports are shown around.
        address, query, _ = config.url.partition("?")
        facts = [address + (query and "?..."), f"profile {config.profile}", f"deadline {config.deadline_s:g} s"]
        facts.append("with a token" if config.token else "without a token")
        facts += [f"{len(config.headers)} further headers"] if config.headers else []
        facts += [f"through the proxy {self.probe.transport.proxy}"] if self.probe.transport.proxy else []
        facts += (
            ["SAM2_MCP_CA_FILE is not used for http"] if config.ca_file and self.probe.transport.tls is None else []
        )
        return ", ".join(facts)

    def name(self) -> str:
        """The addresses of the host, or of the proxy where there is one."""
        host, port = self._first_hop()
        found: list[Any] = []

        def resolve() -> None:
            try:
                found.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            except (OSError, UnicodeError) as error:
                found.append(error)

        # It cannot be told to stop, so it is left alone after its time.
        thread = threading.Thread(target=resolve, daemon=True)
        thread.start()
        thread.join(self.probe.remaining_s)
        if not found or isinstance(found[0], Exception):
            reason = found[0] if found else "no answer of the name service in time"
            mend = "correct the host in SAM2_MCP_URL; from inside a container the machine around it is "
            raise Trouble(f"{host} is no known name ({reason})", mend + "host.docker.internal, or the service's name")
        self._addresses = found
        return f"{host} is {', '.join(dict.fromkeys(str(entry[4][0]) for entry in found))}"

    def tcp(self) -> str:
        """A connection to one of the addresses."""
        with self._connected() as connection:
            address, port = connection.getpeername()[:2]
            return f"connected to {address}, port {port}"

    def tls(self) -> str:
        """A handshake, what the server showed, and whether it is content with what we showed."""
        if self.probe.transport.url.scheme != "https":
            raise Skipped("the address is http")
        if self.probe.transport.proxy:
            raise Skipped("made behind the proxy, in the next stage")
        import ssl

        from sam2_mcp_bridge.transport.tls import trouble

        with self._connected() as connection:
            connection.settimeout(max(0.1, self.probe.remaining_s - CLIENT_CERTIFICATE_PATIENCE_S))
            try:
                with self.probe.transport.tls.wrap_socket(
                    connection, server_hostname=self.probe.transport.url.host
                ) as secure:
                    days = (ssl.cert_time_to_seconds(secure.getpeercert()["notAfter"]) - time.time()) / 86400
                    self._await_client_verdict(secure)
                    soon = ": renew the server's certificate soon" if days < EXPIRES_SOON_DAYS else ""
                    return f"{secure.version()}, the certificate holds for {days:.0f} more days{soon}"
            except OSError as error:
                found = trouble(error) or ("tls", str(error), "")
                raise self.probe.transport.failure(found[0], detail=found[1], mend=found[2]) from error

    def http(self) -> str:
        """That the endpoint answers `initialize` in JSON-RPC, whatever it says."""
        try:
            self._greeting, headers, status = self.probe.ask(None, "initialize", initialize_params(OWN_HOST))
        except Failure as failure:
            if failure.code != "no_answer":
                raise
            raise Trouble("the answer holds no JSON-RPC response", _WRONG_SERVER) from failure
        self._session_id = headers.get("mcp-session-id")
        return f"HTTP {status}, {headers.get('content-type', 'no content type')}"

    def eras(self) -> str:
        """Which revisions of MCP the server has: by handshake, and 2026-07-28 without."""
        outcomes: dict[str, Result | Refusal | Failure] = {"initialize": self._greeting}
        try:
            outcomes["server/discover"] = self.probe.ask(ModernSession(OWN_HOST), "server/discover", None).answer
        except SessionLost as lost:
            outcomes["server/discover"] = lost.outcome
        except Failure as failure:
            outcomes["server/discover"] = failure
        legacy, modern = (
            parse(answer.value) if isinstance(answer, Result) else None
            for parse, answer in zip((initialized, discovered), outcomes.values(), strict=True)
        )
        if legacy is not None:
            self._session = Session(legacy, self._session_id)
        elif modern is not None:
            self._session = ModernSession(OWN_HOST, modern)
        else:
            said = "; ".join(f"{method}: {_words(answer)}" for method, answer in outcomes.items())
            raise Trouble(f"no revision of MCP in common ({said})", _WRONG_SERVER)
        offers = [f"{legacy.version} by initialize"] if legacy else []
        return ", ".join(offers + ([f"{modern.version} by server/discover"] if modern else []))

    def initialize(self) -> str:
        """The end of the handshake."""
        server = self._session.server
        if not server.modern:
            notification = encode({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
            with self.probe.sent("POST", message_headers(self._session), notification) as response:
                if not response.is_success:
                    detail = f"HTTP {response.status_code} to notifications/initialized"
                    raise Trouble(f"the server refused the end of the handshake ({detail})", _ASK_AUTHOR)
        who = f"{server.info.get('name', 'a server without a name')} {server.info.get('version', '')}".strip()
        return f"{who}, offers {', '.join(sorted(server.capabilities)) or 'nothing'}"

    def tools(self) -> str:
        """All pages of tools/list, and that a host can use what stands there."""
        if "tools" not in self._session.server.capabilities:
            raise Skipped("the server offers no tools")
        params: dict[str, Any] = {}
        for _ in range(MAX_PAGES):
            page = self._result("tools/list", params)
            for tool in self._listed(page):
                self._tools[tool["name"]] = tool
            cursor = page.get("nextCursor")
            if cursor is None:
                return f"{len(self._tools)}: {', '.join(self._tools)}" if self._tools else "0"
            params = {"cursor": cursor}
        raise Trouble(f"tools/list has more than {MAX_PAGES} pages", _ASK_AUTHOR)

    def status(self) -> str:
        """A call of get_status."""
        if "get_status" not in self._tools:
            raise Skipped("the server has no tool get_status")
        facts = self._call("get_status", {})
        while facts.get("ready") is False and self.probe.remaining_s > 2 * READY_PAUSE_S:
            time.sleep(READY_PAUSE_S)
            facts = self._call("get_status", {})
        if facts.get("ready") is False:
            reasons = ", ".join(map(str, facts.get("not_ready_because") or ["it does not say why"]))
            raise Trouble(f"the worker is not ready: {reasons}", "run sam2-mcp-worker doctor where the worker runs")
        return f"version {facts['version']}, ready" if "version" in facts else "answered"

    def image(self) -> str:
        """A picture that nobody has seen before goes to the worker and is read there."""
        schema = as_object(self._tools.get("read_text", {}).get("inputSchema"))
        if "source" not in as_object(schema.get("properties")):
            raise Skipped("the server has no tool read_text with a source")
        picture = _new_picture()
        handle = self._upload(picture)
        facts = self._call("read_text", {"source": handle})
        found = (facts.get("width_px"), facts.get("height_px"))
        if found != (WIDTH_PX, HEIGHT_PX):
            what = f"the picture has {WIDTH_PX} x {HEIGHT_PX} px here and {found[0]} x {found[1]} px there"
            raise Trouble(what, "look for what changes bodies on the way: a proxy, a gateway")
        return f"{len(picture)} bytes sent, read as {WIDTH_PX} x {HEIGHT_PX} px"

    def close(self) -> None:
        """End the session at the server, if it keeps one."""
        session = getattr(self, "_session", None)
        if session is not None and session.id is not None:
            self.probe.deadline_s = time.monotonic() + 1.0
            with suppress(Failure), self.probe.sent("DELETE", session.headers()):
                pass

    # What the stages share

    def _first_hop(self) -> tuple[str, int]:
        url = httpx.URL(self.probe.transport.proxy) if self.probe.transport.proxy else self.probe.transport.url
        return _host(url), url.port or (443 if url.scheme == "https" else 80)

    @contextmanager
    def _connected(self) -> Iterator[socket.socket]:
        failed: OSError | None = None
        for family, kind, protocol, _, address in self._addresses:
            connection = socket.socket(family, kind, protocol)
            try:
                connection.settimeout(self.probe.remaining_s / len(self._addresses))
                connection.connect(address)
            except OSError as error:
                connection.close()
                failed = error
                continue
            with connection:
                yield connection
            return
        host, port = self._first_hop()
        mend = "start the worker (sam2-mcp-worker serve) or correct the port in SAM2_MCP_URL"
        if self.probe.transport.proxy:
            mend = f"start the proxy or correct its address: {self.probe.transport.proxy}"
        elif host in ("127.0.0.1", "localhost", "::1"):
            mend += "; inside a container that address is the container itself"
        raise Trouble(f"port {port} of {host} takes no connection ({failed})", mend)

    def _await_client_verdict(self, secure: Any) -> None:
        secure.settimeout(CLIENT_CERTIFICATE_PATIENCE_S)
        try:
            first = secure.recv(1)
        except TimeoutError:
            return  # it waits for our request, as it should
        except ConnectionError:  # with OpenSSL 3.5 a reset is told as such, with 3.0 as an end
            first = b""
        if not first:
            detail = "it closed the connection right after the handshake"
            raise self.probe.transport.failure("client_certificate", detail=detail)

    def _result(self, method: str, params: Any) -> dict[str, Any]:
        try:
            answer = self.probe.ask(self._session, method, params).answer
        except SessionLost as lost:
            what = f"the server lost the session ({_words(lost.outcome)})"
            raise Trouble(what, "see its log: it must keep a session") from lost
        if isinstance(answer, Refusal):
            raise Trouble(f"{method} was refused: {_words(answer)}", _ASK_AUTHOR)
        return self._session.seen(method, answer.value)

    def _listed(self, page: dict[str, Any]) -> list[dict[str, Any]]:
        tools = page.get("tools")
        if not isinstance(tools, list):
            raise Trouble("tools/list has no list of tools", _ASK_AUTHOR)
        for number, tool in enumerate(map(as_object, tools), len(self._tools) + 1):
            name = tool.get("name")
            if not isinstance(name, str) or not name:
                raise Trouble(f"tool {number} has no name", _ASK_AUTHOR)
            if name in self._tools:
                raise Trouble(f"the tool {name} is there twice", _ASK_AUTHOR)
            if as_object(tool.get("inputSchema")).get("type") != "object":
                raise Trouble(f"the inputSchema of the tool {name} is not of type object", _ASK_AUTHOR)
        return tools

    def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What a tool answered: its structured content, or the JSON in its first text; {} where it is neither."""
        result = self._result("tools/call", {"name": name, "arguments": arguments})
        content = result.get("content")
        text = str(as_object(content[0]).get("text", "")) if isinstance(content, list) and content else ""
        if result.get("isError"):
            raise Trouble(f"{name} failed: {text}", "see the worker's log")
        if isinstance(result.get("structuredContent"), dict):
            return as_object(result["structuredContent"])
        try:
            return as_object(decode(text.encode("utf-8", "replace")))
        except ValueError:
            return {}

    def _upload(self, picture: bytes) -> str:
        headers = {"Content-Type": "application/octet-stream"}
        with self.probe.sent("POST", headers, picture, "files?name=sam2-mcp-check.png") as response:
            if response.status_code in (404, 405):
                raise Skipped(f"the server takes no files (HTTP {response.status_code})")
            failure = self.probe.transport.failure
            if not response.is_success:
                said = _words(refusal(response, None, failure))
                raise Trouble(f"POST /files was refused: {said}", "see the worker's log")
            about = next(messages(response, EventParser(MAX_BODY_BYTES), failure), {})
        handle, sha256 = about.get("handle"), about.get("sha256")
        if not isinstance(handle, str):
            raise Trouble("POST /files gave no handle for the picture", "see the worker's log")
        if about.get("size_bytes") != len(picture) or sha256 not in (None, hashlib.sha256(picture).hexdigest()):
            what = f"{len(picture)} bytes were sent and {about.get('size_bytes')} other bytes arrived"
            raise Trouble(what, "look for what changes bodies on the way: a proxy, a gateway")
        return handle


def _host(url: httpx.URL) -> str:
    return url.raw_host.decode("ascii")


def _words(answer: Result | Refusal | Failure) -> str:
    """What an answer that did not help says."""
    if isinstance(answer, Refusal):
        return str(answer.error["message"])
    return str(answer) if isinstance(answer, Failure) else "an answer without a revision that the bridge has"


def _new_picture() -> bytes:
    """A white PNG with a barely grey first row of random bytes: harmless, and in nobody's cache."""
    rows = [bytes(255 - value % 8 for value in os.urandom(WIDTH_PX))] + [b"\xff" * WIDTH_PX] * (HEIGHT_PX - 1)
    header = struct.pack(">IIBBBBB", WIDTH_PX, HEIGHT_PX, 8, 0, 0, 0, 0)  # 8 bits of grey
    pixels = zlib.compress(b"".join(b"\x00" + row for row in rows))
    chunks = ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
