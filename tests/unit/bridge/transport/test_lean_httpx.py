"""How httpx is imported: each test in an interpreter of its own, because it can happen only once."""

import json
import os
import shutil
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.fakes import upstream as fake_upstream
from tests.fakes.upstream import FakeUpstream

LEAN = "from sam2_mcp_bridge.transport.lean_httpx import PLAIN, httpx\n"
IS_STAND_IN = "def is_stand_in(module):\n    return type(module).__name__ == '_StandIn'\n"
OPENSSL = {"_ssl", "_hashlib"}
HEAVY = OPENSSL | {"http.client", "email.parser", "asyncio", "anyio", "urllib.error", "tempfile", "idna.core", "click"}


def run(code: str, *argv: str, lean: str = LEAN, **environ: str) -> Any:
    """What the last expression of `code`, `answer`, is in a fresh interpreter."""
    code = f"import sys\n{lean}{IS_STAND_IN}{code}\nimport json\nprint(json.dumps(answer))"
    done = subprocess.run(
        [sys.executable, "-c", code, *argv],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


GET = "client.get(sys.argv[1], headers={'Connection': 'close'})"
LOADED = "[name for name, module in sys.modules.items() if module is not None and not is_stand_in(module)]"


def serve_get(*headers: str) -> FakeUpstream:
    fake = FakeUpstream()
    fake.on["GET"] = fake_upstream.raw(200, "text/plain", b"hello", *headers)
    return fake


def test_plain_http_loads_no_openssl_and_none_of_the_other_heavy_parts() -> None:
    with serve_get() as fake:
        code = f"with httpx.Client(verify=PLAIN, trust_env=False) as client:\n    {GET}\nanswer = {LOADED}"
        loaded = set(run(code, fake.url))
    assert loaded.isdisjoint(HEAVY)
    assert {"httpx", "httpcore", "h11"} <= loaded


@pytest.mark.parametrize("profile", ["station", "full"])
def test_a_bridge_at_work_has_loaded_none_of_them(profile: str) -> None:
    """Whatever any module of the bridge imports, and in the order in which the program does."""
    code = """
import io, os, sys
def session():
    reading, writing = os.pipe()
    os.write(writing, b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}\\n')
    return Wire(reading, os.open(os.devnull, os.O_WRONLY)), writing
from sam2_mcp_bridge.process.stdio import Wire
from sam2_mcp_bridge import __main__ as entry
entry.stdio.claim = lambda: wire
wire, writing = session()
write_line = Wire.write_line
Wire.write_line = lambda self, line: (write_line(self, line), os.close(writing))
entry.main(["--url", sys.argv[1], "--profile", sys.argv[2]])
answer = LOADED
""".replace("LOADED", LOADED)
    with FakeUpstream() as fake:
        loaded = set(run(code, fake.url, profile, lean=""))
        assert fake.received("tools/call")
    assert loaded.isdisjoint(HEAVY | {"inspect", "http.cookies", "importlib.resources", "concurrent.futures"})
    assert {"sam2_mcp_bridge.app", "httpx", "h11"} <= loaded


def test_https_loads_tls_and_checks_the_certificate(tmp_path: Path) -> None:
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    fake = FakeUpstream(tls=tls)
    fake.on["GET"] = fake_upstream.raw(200, "text/plain", b"hello")
    code = f"""
import ssl
answer = []
for verify in ssl.create_default_context(cafile=sys.argv[2]), True:
    with httpx.Client(verify=verify, trust_env=False) as client:
        try:
            answer.append({GET}.text)
        except httpx.ConnectError as error:
            answer.append(str(error))
"""
    with fake:
        own_authority, public_authorities = run(code, fake.url, str(tmp_path / "ca.pem"))
    assert own_authority == "hello"
    assert "CERTIFICATE_VERIFY_FAILED" in public_authorities


def test_a_cookie_that_a_server_sets_comes_back_to_it() -> None:
    with serve_get("set-cookie: node=7; Path=/", "set-cookie: other=1; Path=/elsewhere") as fake:
        code = f"""
with httpx.Client(verify=PLAIN, trust_env=False) as client:
    {GET}, {GET}
    answer = dict(client.cookies)
"""
        assert run(code, fake.url) == {"node": "7", "other": "1"}
        first, second = fake.received("GET")
    assert "cookie" not in first.headers
    assert second.headers["cookie"] == "node=7"


def test_a_cookie_that_the_client_was_given_is_sent() -> None:
    with serve_get() as fake:
        run(
            f"with httpx.Client(verify=PLAIN, cookies={{'a': 'b'}}, trust_env=False) as client:\n    {GET}\nanswer = 0",
            fake.url,
        )
        assert fake.received("GET")[0].headers["cookie"] == "a=b"


def test_proxies_are_read_from_the_environment_when_asked() -> None:
    code = "with httpx.Client(verify=PLAIN) as client:\n    answer = client.get('http://far.invalid/').text"
    with serve_get() as proxy:
        assert run(code, http_proxy=f"http://127.0.0.1:{proxy.port}", no_proxy="") == "hello"


def test_digest_authentication_works() -> None:
    code = """
def server(request):
    given = request.headers.get("authorization", "")
    challenge = {"www-authenticate": 'Digest realm="r", nonce="n", qop="auth, auth-int", algorithm=SHA-256'}
    return httpx.Response(200, text=given) if given else httpx.Response(401, headers=challenge)
with httpx.Client(transport=httpx.MockTransport(server), auth=httpx.DigestAuth("u", "p"), verify=PLAIN) as client:
    answer = client.get("http://localhost/").text
"""
    assert run(code).startswith('Digest username="u", realm="r", nonce="n"')


def test_a_host_name_that_is_not_ascii_is_encoded() -> None:
    assert run("answer = httpx.URL('http://bücher.example/').raw_host.decode()") == "xn--bcher-kva.example"


def test_a_stand_in_becomes_the_real_module_for_everybody() -> None:
    code = """
import hashlib, inspect, ssl
answer = [is_stand_in(module) for module in (hashlib, inspect, ssl)]
answer += [hashlib.sha256(b"").hexdigest()[:8], str(inspect.signature(is_stand_in)), ssl.OPENSSL_VERSION[:7]]
assert inspect.get_annotations(is_stand_in) == {}
answer += [is_stand_in(sys.modules[name]) for name in ("hashlib", "inspect", "ssl")]
answer.append(isinstance(ssl.create_default_context(), ssl.SSLContext))
"""
    assert run(code) == [True] * 3 + ["e3b0c442", "(module)", "OpenSSL"] + [False] * 3 + [True]


def test_threads_that_use_a_stand_in_at_once_get_the_same_module() -> None:
    code = """
import threading
import ssl
gate, contexts, failures = threading.Barrier(16), set(), []
def use():
    gate.wait()
    try:
        contexts.add(ssl.TLSVersion)
    except BaseException as error:
        failures.append(repr(error))
threads = [threading.Thread(target=use) for _ in range(16)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
answer = [len(contexts), failures]
"""
    assert run(code) == [1, []]


def test_other_modules_find_urllib_and_the_cookie_jar_complete() -> None:
    code = """
import http.cookiejar, urllib.request
real = urllib.request.Request("http://localhost/x", headers={"A": "b"})
answer = [real.selector, real.headers, len(http.cookiejar.CookieJar()), "anyio" in sys.modules]
"""
    assert run(code) == ["/x", {"A": "b"}, 0, False]


def test_an_httpx_that_was_imported_before_is_left_as_it_is() -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import httpx as first, sys\n{LEAN}{IS_STAND_IN}assert first is httpx\n"
         "assert not [name for name, module in sys.modules.items() if module is None or is_stand_in(module)]"],
        capture_output=True, text=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("__init__", "from .__version__", "import anyio\nfrom .__version__"),
        ("_client", "import enum\n", "import enum, ssl\nLOWEST = ssl.SSLContext.minimum_version\n"),
        ("_models", "self.response", "self.answer"),
    ],
    ids=["needs what is absent", "fails while it is imported", "fails while it is used"],
)
def test_an_httpx_that_cannot_live_with_it_is_imported_as_usual(
    tmp_path: Path, module: str, old: str, new: str
) -> None:
    import httpx

    shutil.copytree(Path(httpx.__file__).parent, tmp_path / "httpx")
    source = tmp_path / "httpx" / f"{module}.py"
    before = source.read_text(encoding="utf-8")
    assert old in before
    source.write_text(before.replace(old, new), encoding="utf-8")
    code = f"""
stand_ins = [name for name, module in sys.modules.items() if module is None or is_stand_in(module)]
with httpx.Client(verify=PLAIN, trust_env=False) as client:
    answer = [httpx.__file__, stand_ins, {GET}.text]
"""
    with serve_get("set-cookie: a=b") as fake:
        assert run(code, fake.url, PYTHONPATH=str(tmp_path)) == [str(tmp_path / "httpx" / "__init__.py"), [], "hello"]
