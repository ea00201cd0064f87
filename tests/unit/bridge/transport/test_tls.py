"""Care of the connection: TLS, on real sockets."""

import socket
import ssl
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from tests.fakes import upstream as fakes
from tests.fakes.certificates import LONG_AGO, NOT_SO_LONG_AGO, Authority, refusing_client_certificates
from tests.fakes.upstream import FakeUpstream
from tests.unit.bridge.transport.sending import failure, localhost, setup_error, status

from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.transport import tls
from sam2_mcp_bridge.transport.transport import Transport


def test_a_server_with_an_own_ca_is_trusted_by_its_file_or_folder(authority: Authority, tmp_path: Path) -> None:
    with FakeUpstream(tls=authority.server()) as fake:
        assert status(Config(url=fake.url, ca_file=str(authority.file))) == 200
        (authority.folder / "README").write_text("no certificate", encoding="utf-8")
        (authority.folder / "sub").mkdir()
        assert status(Config(url=fake.url, ca_file=str(authority.folder))) == 200


def test_a_ca_file_may_hold_several_certificates_and_comments_or_the_servers_own(
    authority: Authority, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_bytes(
        "# 회사 CA\n".encode() + Authority(tmp_path / "other").file.read_bytes() + authority.file.read_bytes()
    )
    with FakeUpstream(tls=authority.server()) as fake:
        assert status(Config(url=fake.url, ca_file=str(bundle))) == 200
    issued, context = authority.ca.issue_cert("localhost"), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(context)
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "server.pem"))
    with FakeUpstream(tls=context) as fake:
        assert status(Config(url=localhost(fake), ca_file=str(tmp_path / "server.pem"))) == 200


def test_a_certificate_that_cannot_be_accepted_is_named_with_its_mend_and_nothing_is_sent(
    authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path / "other")
    tomorrow = LONG_AGO.replace(year=2999)
    cases: list[tuple[ssl.SSLContext, str | None, str, str]] = [
        (authority.server(), None, "unable to get local issuer", "Set SAM2_MCP_CA_FILE of the bridge"),
        (authority.server(), str(other.file), "unable to get local issuer", "Set SAM2_MCP_CA_FILE of the bridge"),
        (authority.server("worker.test"), str(authority.file), "Hostname mismatch", "Set SAM2_MCP_URL to a name"),
        (
            authority.server("localhost", not_before=LONG_AGO, not_after=NOT_SO_LONG_AGO),
            str(authority.file),
            "certificate has expired",
            "Renew the server's certificate",
        ),
        (
            authority.server("localhost", not_before=tomorrow, not_after=tomorrow.replace(year=3000)),
            str(authority.file),
            "certificate is not yet valid",
            "Set the clock",
        ),
    ]
    for server, ca_file, detail, mend in cases:
        with FakeUpstream(tls=server) as fake:
            refused = failure(Config(url=localhost(fake), ca_file=ca_file))
            assert refused.code == "certificate" and not refused.transient and fake.calls == []
            assert detail in str(refused) and mend in str(refused)


def test_an_address_that_the_certificate_does_not_hold_is_a_wrong_name(authority: Authority) -> None:
    with FakeUpstream(tls=authority.server("localhost")) as fake:
        assert "Set SAM2_MCP_URL to a name" in str(failure(Config(url=fake.url, ca_file=str(authority.file))))


def test_a_client_certificate_is_shown_where_it_is_wanted(authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.client()
    together = tmp_path / "together.pem"
    together.write_bytes(cert.read_bytes() + key.read_bytes())
    with FakeUpstream(tls=authority.server(clients=authority)) as fake:
        trusting = {"url": fake.url, "ca_file": str(authority.file)}
        assert status(Config(**trusting, client_cert=str(cert), client_key=str(key))) == 200
        assert status(Config(**trusting, client_cert=str(together))) == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_missing_or_foreign_client_certificate_is_named(
    authority: Authority, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    cert, key = Authority(tmp_path / "other").client()
    server = authority.server(clients=authority)
    server.minimum_version = server.maximum_version = version
    with refusing_client_certificates(server) as url:
        foreign = failure(Config(url=url, ca_file=str(authority.file), client_cert=str(cert), client_key=str(key)))
        assert foreign.code == "client_certificate" and "SAM2_MCP_CLIENT_CERT" in str(foreign)
        missing = failure(Config(url=url, ca_file=str(authority.file)))
        # TLS 1.2 has no word of its own for it.
        assert missing.code == ("tls" if version == ssl.TLSVersion.TLSv1_2 else "client_certificate")
        assert not missing.transient and "SAM2_MCP_CLIENT_CERT" in str(missing)


def test_a_connection_that_ends_without_a_goodbye_of_tls_leaves_open_whether_the_call_ran(authority: Authority) -> None:
    with FakeUpstream(tls=authority.server()) as fake:
        fake.on["tools/list"] = fakes.reset()
        assert failure(Config(url=fake.url, ca_file=str(authority.file))).code == "connection_broken"


def test_tls_to_a_server_without_it_names_the_scheme(authority: Authority) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(1)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                while connection.recv(1024):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        refused = failure(Config(url=f"https://127.0.0.1:{listener.getsockname()[1]}/mcp", ca_file=str(authority.file)))
        thread.join(10)
        assert refused.code == "tls" and "must begin with http:// or https://" in str(refused)


def test_files_that_tls_cannot_use_are_setup_errors_with_their_names(authority: Authority, tmp_path: Path) -> None:
    empty, damaged = tmp_path / "empty", tmp_path / "damaged.pem"
    empty.mkdir()
    damaged.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", encoding="ascii")
    (cert, key), (other_cert, _) = authority.client(), authority.client("other")
    locked = tmp_path / "locked.pem"
    private = load_pem_private_key(key.read_bytes(), None)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word"))
    locked.write_bytes(pem)
    for settings, says in (
        ({"ca_file": str(tmp_path / "none")}, "SAM2_MCP_CA_FILE: cannot read"),
        ({"ca_file": str(empty)}, f"SAM2_MCP_CA_FILE: {empty} holds no certificate in PEM format"),
        ({"ca_file": str(key)}, "holds no certificate in PEM format"),
        ({"ca_file": str(damaged)}, "damaged.pem holds a damaged certificate"),
        ({"client_cert": str(tmp_path / "none")}, "SAM2_MCP_CLIENT_CERT: cannot read"),
        ({"client_cert": str(cert), "client_key": str(tmp_path / "none")}, "none: No such file"),
        ({"client_cert": str(cert)}, "must hold a certificate and its key in PEM format"),
        ({"client_cert": str(other_cert), "client_key": str(key)}, "(key values mismatch)"),
        ({"client_cert": str(cert), "client_key": str(locked)}, "SAM2_MCP_CLIENT_KEY: the key has a passphrase"),
    ):
        error = setup_error(**settings)
        assert error.exit_code == 3 and says in str(error)


def test_uploads_and_calls_share_one_context(authority: Authority) -> None:
    config = Config(url="https://worker/mcp", ca_file=str(authority.file))
    assert Transport(config).tls is Transport(config).tls


def test_what_no_tls_error_is_behind_is_no_trouble_of_tls() -> None:
    assert tls.trouble(OSError("refused")) is None
    assert tls.trouble(ssl.SSLError(1, "without a reason")) == ("tls", "without a reason", "")


def test_plain_http_loads_no_tls_and_no_proxy_settings() -> None:
    code = (
        "import sys\n"
        "from sam2_mcp_bridge.config import Config\n"
        "from sam2_mcp_bridge.transport.transport import Transport\n"
        "Transport(Config(ca_file='/nowhere', client_cert='/nowhere'))\n"
        "heavy = ('_ssl', 'certifi', 'urllib.request', 'sam2_mcp_bridge.transport.tls')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "['certifi']" or done.stdout.strip() == "[]"  # certifi as a stand-in
