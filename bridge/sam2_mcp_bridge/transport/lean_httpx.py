"""httpx without the parts that a bridge never uses. Owns how httpx is imported; knows nothing of what it is used for.

httpx and the httpcore below it load 190 modules, and a bridge to a plain-http worker needs two thirds of them: cookies
bring urllib, http.client and email, digest authentication brings OpenSSL's hashes, whatever could speak TLS brings
OpenSSL. A station holds a bridge for each session in 512 MB; without those parts it is 10.9 MB of private memory
instead of 15.8 and 50 ms of CPU less at the start (httpx 0.28, Python 3.11).

What is optional and asynchronous is absent while httpx is imported. For the rest there are stand-ins, and each becomes
the real module the first time that it is asked for what it cannot answer: https, proxies, cookies and digest
authentication work and load what they need. A bridge to an https address loads TLS when it makes its client, before
any thread is started.

An httpx that does not work with that is imported as usual. httpx 0.27 does, but loads TLS all the same.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import CoroutineType, GeneratorType, ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["PLAIN", "httpx", "place_stand_ins"]

# What plain http passes as `verify`. False would make a TLS context that is never used (17 ms, 4 MB resident).
PLAIN: Any = None

# Optional for httpx and httpcore, of no use here: the command line client (with click and rich 6 MB and 0.15 s), the
# asynchronous half (with an anyio before 4.13 6 MB), HTTP/2, and codings of bodies that the bridge never asks for.
_ABSENT = ("anyio", "brotli", "brotlicffi", "h2", "httpx._main", "trio", "zstandard")

# Stood in for, with the private and resident MB that it saves (httpx 0.28, Python 3.11). The names beside a module are
# bound when httpx is imported, but not called then.
_LATER = {
    "urllib.request": ("getproxies", "parse_http_list"),  # 2.6, 2.8: http.client, email.parser, tempfile and more
    "http.cookiejar": ("Cookie",),  # with urllib.request
    "ssl": ("SSLContext", "SSLSocket"),  # 1.0, 3.9: OpenSSL
    "hashlib": ("md5", "sha1", "sha256", "sha512"),  # 0.5, 3.6: OpenSSL again, for its hashes
    "email.message": (),  # 0.8, 0.8
    "inspect": (),  # 0.6, 0.7
    "certifi": (),  # 0.5, 0.7: importlib.resources
    "idna": (),  # 0.2, 0.1, 6 ms: tables for host names that are not ASCII
    "sniffio": (),
    "httpcore._async": (  # 0.2, 0.1, 8 ms
        "AsyncConnectionInterface",
        "AsyncConnectionPool",
        "AsyncHTTP2Connection",
        "AsyncHTTP11Connection",
        "AsyncHTTPConnection",
        "AsyncHTTPProxy",
        "AsyncSOCKSProxy",
    ),
}
# What their stand-ins say is enough for httpx and for nobody else; the others stay until they are used.
_FOR_HTTPX_ONLY = ("urllib.request", "http.cookiejar")


class _StandIn(ModuleType):
    """A module that is loaded when it is used, not when it is imported; `known` is what it can answer by itself."""

    def __init__(self, name: str, known: dict[str, Any]) -> None:
        super().__init__(name)
        vars(self).update(known)
        self.known = known

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system asks each module for its __path__
            raise AttributeError(name)
        return getattr(_load(self.__name__), name)


_lock = threading.Lock()  # guards the step from stand-in to real module; nothing is imported under it


def _load(name: str) -> Any:
    """The real module, in the place of its stand-in, which passes everything on from now on."""
    with _lock:
        stand_in = sys.modules.get(name)
        if isinstance(stand_in, _StandIn):
            _remove(name)
            for known in stand_in.known:
                vars(stand_in).pop(known, None)
    return importlib.import_module(name)


def _remove(name: str) -> None:
    stand_in = sys.modules.pop(name, None)
    package, _, submodule = name.rpartition(".")
    if package in sys.modules and vars(sys.modules[package]).get(submodule) is stand_in:
        delattr(sys.modules[package], submodule)


def _later(module: str, name: str) -> Any:
    """Calls the real thing. A class, for isinstance: nothing is an instance of what was never loaded."""

    def call(_: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(_load(module), name)(*args, **kwargs)

    return type(name, (), {"__new__": call})


class _CookieJar:
    """Empty until a server sets a cookie; from then on the real jar."""

    _jar: Any = None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._jar or ())

    def __getattr__(self, name: str) -> Any:
        if self._jar is None:
            self._jar = _load("http.cookiejar").CookieJar()
        return getattr(self._jar, name)

    def extract_cookies(self, response: Any, request: Any) -> None:
        if self._jar is not None or "set-cookie" in response.response.headers:
            self.__getattr__("extract_cookies")(response, request)


class _Request:
    """What httpx shows to the cookie jar; the real one is made if the jar looks at it."""

    def __init__(self, **given: Any) -> None:
        self._given = given

    def __getattr__(self, name: str) -> Any:
        return getattr(_load("urllib.request").Request(**self._given), name)

    def add_unredirected_header(self, key: str, value: str) -> None:
        """Nothing: httpx's subclass writes the header to httpx's request."""


def _signature(of: Any, **options: Any) -> Any:
    """The decorator of dataclasses makes a docstring of it, where there is none."""
    return "()" if hasattr(of, "__dataclass_fields__") else _load("inspect").signature(of, **options)


def _annotations(of: Any, **options: Any) -> Any:
    """The decorator asks for those of its class, on Python 3.13 of this module."""
    if isinstance(of, type) and not options and sys.version_info < (3, 14):
        return dict(vars(of).get("__annotations__", {}))
    return _load("inspect").get_annotations(of, **options)


_KNOWN: dict[str, dict[str, Any]] = {
    "urllib.request": {"Request": _Request},
    "http.cookiejar": {"CookieJar": _CookieJar},
    "inspect": {
        "signature": _signature,
        "get_annotations": _annotations,
        "iscoroutine": lambda value: isinstance(value, CoroutineType),
        "isgenerator": lambda value: isinstance(value, GeneratorType),
    },
}
_PACKAGES = ("email", "http", "urllib")


def place_stand_ins() -> None:
    """To be called as early as possible, for what is imported already is not stood in for. Harmless the second time."""
    if "httpx" in sys.modules:
        return
    for name in _LATER.keys() - sys.modules.keys():
        known = {later: _later(name, later) for later in _LATER[name]} | _KNOWN.get(name, {})
        sys.modules[name] = _StandIn(name, known)
        package, _, submodule = name.rpartition(".")
        if package in _PACKAGES:
            setattr(importlib.import_module(package), submodule, sys.modules[name])


@contextmanager
def _optional_parts_absent() -> Iterator[None]:
    absent = [name for name in _ABSENT if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in absent:
            if sys.modules.get(name, name) is None:
                del sys.modules[name]


def _prove(module: Any) -> None:
    """One request and its answer through all of httpx, and no network."""
    transport = module.MockTransport(lambda request: module.Response(200, content=b"."))
    with module.Client(transport=transport, trust_env=False, verify=PLAIN) as client:
        client.post("http://localhost/", content=b".").raise_for_status()
    module.HTTPTransport(verify=PLAIN, trust_env=False).close()


def _import() -> Any:
    if "httpx" in sys.modules:
        return sys.modules["httpx"]
    place_stand_ins()
    try:
        with _optional_parts_absent():
            module = importlib.import_module("httpx")
            importlib.import_module("httpcore")  # httpx does that when it makes its first client
        _prove(module)
        _remove_stand_ins(_FOR_HTTPX_ONLY)
        return module
    except Exception:  # whatever it is, the plain import is the better answer
        _remove_stand_ins(_LATER)
        for name in list(sys.modules):
            if name.partition(".")[0] in ("httpx", "httpcore", "h11"):
                _remove(name)
        return importlib.import_module("httpx")


def _remove_stand_ins(names: Iterable[str]) -> None:
    for name in names:
        if isinstance(sys.modules.get(name), _StandIn):
            _remove(name)


if TYPE_CHECKING:
    import httpx
else:

    def __getattr__(name: str) -> Any:
        """`from sam2_mcp_bridge.transport.lean_httpx import httpx` imports it; this module alone does not."""
        if name == "httpx":
            return _import()
        raise AttributeError(name)
