import os
from pathlib import Path

import pytest

from sam2_mcp_bridge import __version__
from sam2_mcp_bridge.config import Config, load
from sam2_mcp_bridge.errors import SetupError


def refused(argv: list[str], environ: dict[str, str]) -> SetupError:
    with pytest.raises(SetupError) as caught:
        load(argv, environ)
    return caught.value


def test_without_settings_the_defaults_hold() -> None:
    assert load([], {}) == Config("http://127.0.0.1:8765/mcp", None, 27.0, 8 * 2**20)


def test_the_environment_sets_everything() -> None:
    environ = {
        "SAM2_MCP_URL": "https://worker:8765/mcp?a=b",
        "SAM2_MCP_TOKEN": "secret",
        "SAM2_MCP_PROFILE": "station",
        "SAM2_MCP_DEADLINE_S": "12.5",
        "SAM2_MCP_MAX_ANSWER_BYTES": "100000",
        "SAM2_MCP_MAX_PARALLEL_CALLS": "3",
    }
    assert load([], environ) == Config("https://worker:8765/mcp?a=b", "secret", 12.5, 100000, "station", 3)


def test_a_flag_beats_its_variable() -> None:
    environ = {"SAM2_MCP_URL": "http://a/mcp", "SAM2_MCP_DEADLINE_S": "5"}
    assert load(["--url", "http://b/mcp", "--deadline=6"], environ) == Config("http://b/mcp", deadline_s=6.0)


def test_a_variable_set_to_nothing_is_not_set() -> None:
    assert load([], {"SAM2_MCP_TOKEN": "", "SAM2_MCP_URL": "", "SAM2_MCP_PROFILE": ""}) == Config()


def test_the_token_comes_from_the_stronger_source(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n", encoding="utf-8")
    both = {"SAM2_MCP_TOKEN": "from-variable", "SAM2_MCP_TOKEN_FILE": str(file)}
    assert load([], {"SAM2_MCP_TOKEN_FILE": str(file)}).token == "from-file"
    assert load([], both).token == "from-variable"
    assert load(["--token-file", str(file)], both).token == "from-file"
    assert load(["--token", "from-flag", "--token-file", str(file)], both).token == "from-flag"


def test_the_token_shows_neither_in_a_repr_nor_in_an_error() -> None:
    assert "secret" not in repr(load([], {"SAM2_MCP_TOKEN": "secret"}))
    for bad in ("two secret", "secret\n\nX-Injected: 1", "secret한", "\x00secret"):
        error = refused([], {"SAM2_MCP_TOKEN": bad})
        assert (error.exit_code, str(error)) == (2, "SAM2_MCP_TOKEN: must be one word of printable ASCII characters")


def test_an_unreadable_or_empty_token_file_is_named(tmp_path: Path) -> None:
    missing = refused([], {"SAM2_MCP_TOKEN_FILE": str(tmp_path / "none")})
    assert missing.exit_code == 3 and "No such file" in str(missing) and str(tmp_path / "none") in str(missing)
    assert "Is a directory" in str(refused([], {"SAM2_MCP_TOKEN_FILE": str(tmp_path)}))
    (tmp_path / "empty").write_text(" \n", encoding="utf-8")
    assert "one word" in str(refused(["--token-file", str(tmp_path / "empty")], {}))


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("SAM2_MCP_URL", "worker:8765/mcp", "must look like http://127.0.0.1:8765/mcp"),
        ("SAM2_MCP_URL", "ftp://worker/mcp", "must look like"),
        ("SAM2_MCP_URL", "${SAM2_MCP_URL}", "must look like"),
        ("SAM2_MCP_URL", "http://user:word@worker/mcp", "no user or password"),
        ("SAM2_MCP_URL", "http://worker:0/mcp", "must look like"),
        ("SAM2_MCP_URL", "http://worker:99999/mcp", "Port out of range"),
        ("SAM2_MCP_URL", "http://worker/m cp", "must look like"),
        ("SAM2_MCP_PROFILE", "fast", "'fast' is none of station, full, auto"),
        ("SAM2_MCP_DEADLINE_S", "30", "must be at most 29 in profile station: the station waits for 30 s"),
        ("SAM2_MCP_DEADLINE_S", "3601", "must be a number from 0.1 to 3600"),
        ("SAM2_MCP_MAX_PARALLEL_CALLS", "0", "must be a whole number from 1 to 64"),
        ("SAM2_MCP_DEADLINE_S", "nan", "must be a number from"),
        ("SAM2_MCP_MAX_PARALLEL_CALLS", "1.5", "must be a whole number from"),
        ("SAM2_MCP_DEADLINE_S", "soon", "must be a number from"),
        ("SAM2_MCP_MAX_ANSWER_BYTES", "16777216", "must be a whole number from 32768 to 16776192"),
        ("SAM2_MCP_MAX_ANSWER_BYTES", "8M", "must be a whole number from"),
    ],
)
def test_a_value_that_cannot_be_used_is_a_usage_error_with_the_rule(variable: str, value: str, says: str) -> None:
    error = refused([], {variable: value})
    assert error.exit_code == 2 and str(error).startswith(f"{variable}: ") and says in str(error)


def test_a_bad_flag_is_named_by_its_flag() -> None:
    assert str(refused(["--profile", "fast"], {})).startswith("--profile: ")


def test_only_profile_full_may_wait_longer_than_the_station() -> None:
    assert load(["--profile", "full", "--deadline", "3600"], {}) == Config(profile="full", deadline_s=3600.0)
    assert load(["--profile", "auto", "--deadline", "29"], {}) == Config(profile="auto", deadline_s=29.0)
    assert "in profile auto" in str(refused(["--profile", "auto", "--deadline", "29.1"], {}))


def test_shared_folders_come_from_repeated_flags_or_one_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "한 글").mkdir()
    (tmp_path / "b").mkdir()
    variable = {"SAM2_MCP_SHARE": os.pathsep.join(["", str(tmp_path / "b"), str(tmp_path / "한 글")])}
    assert load([], variable).share == (tmp_path / "b", tmp_path / "한 글")
    assert load(["--share", str(tmp_path / "한 글"), "--share", str(tmp_path)], variable).share == (
        tmp_path / "한 글",
        tmp_path,
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "b"))
    assert load(["--share", "한 글/../b", "--share=~"], {}).share == (tmp_path / "b", tmp_path / "b")


@pytest.mark.parametrize("wrong", ["none", "file", "/", "nul\0", "everything"])
def test_what_is_no_folder_or_too_much_cannot_be_shared(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "everything").symlink_to("/")
    error = refused(["--share", str(tmp_path / wrong)], {})
    assert error.exit_code == 2 and str(error).startswith("--share: ")


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--header", "Authorization: secret"], "no such flag: --header\n"),
        (["--tok=secret", "--header=secret", "-Hsecret"], "no such flag: --tok, --header, -H\n"),
        (["http://worker/mcp?key=secret"], "address goes behind --url"),
        (["--url", "http://worker/mcp", ""], "address goes behind --url"),
    ],
)
def test_what_is_no_flag_is_named_without_its_value(
    argv: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        load(argv, {})
    told = capsys.readouterr().err
    assert says in told and "secret" not in told


@pytest.mark.parametrize(("argv", "code"), [(["--version"], 0), (["--help"], 0), (["--tok", "x"], 2), (["extra"], 2)])
def test_version_help_and_unknown_flags_end_at_once(
    argv: list[str], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        load(argv, {})
    assert caught.value.code == code
    out, err = capsys.readouterr()
    if argv == ["--version"]:
        assert out == f"sam2-mcp {__version__}\n"
    elif argv == ["--help"]:
        assert all(
            name in out
            for name in ("SAM2_MCP_URL", "--token-file", "--deadline SECONDS", "--share FOLDER", "--check [URL]")
        )
    else:
        assert out == "" and "usage: sam2-mcp" in err


def test_care_of_the_connection_is_set_by_flag_or_variable(tmp_path: Path) -> None:
    headers = tmp_path / "headers"
    headers.write_text("X-Api-Key: k\n", encoding="utf-8")
    environ = {
        "SAM2_MCP_CA_FILE": "ca.pem",
        "SAM2_MCP_CLIENT_CERT": "cert.pem",
        "SAM2_MCP_CLIENT_KEY": "key.pem",
        "SAM2_MCP_PROXY": "http://me:word@proxy:3128/",
        "SAM2_MCP_PROXY_FROM_ENV": "yes",
        "SAM2_MCP_HEADER_FILE": str(headers),
    }
    config = load([], environ)
    assert (config.ca_file, config.client_cert, config.client_key) == ("ca.pem", "cert.pem", "key.pem")
    assert (config.proxy, config.proxy_from_env) == ("http://me:word@proxy:3128/", True)
    assert config.headers == (("X-Api-Key", "k"),)
    assert "word" not in repr(config) and "X-Api-Key" not in repr(config)
    flags = ["--ca-file", "ca.pem", "--client-cert=cert.pem", "--client-key", "key.pem"]
    flags += ["--proxy", "http://me:word@proxy:3128/", "--proxy-from-env", "--header-file", str(headers)]
    assert load(flags, {}) == config
    assert load([], {"SAM2_MCP_PROXY_FROM_ENV": "0"}) == Config()


def test_a_file_of_the_home_folder_may_be_named_by_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "token").write_text("word", encoding="utf-8")
    config = load([], {"SAM2_MCP_TOKEN_FILE": "~/token", "SAM2_MCP_CA_FILE": "~/ca.pem"})
    assert (config.token, config.token_file, config.ca_file) == ("word", f"{tmp_path}/token", f"{tmp_path}/ca.pem")


@pytest.mark.parametrize(
    "proxy",
    ["proxy:3128", "socks5://proxy", "http://", "http://p:0", "http://me:word@p:x", "http://p/path", "http://a b"],
)
def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(proxy: str) -> None:
    error = refused([], {"SAM2_MCP_PROXY": proxy})
    assert (error.exit_code, str(error).count("word")) == (2, 0)
    assert str(error).startswith("SAM2_MCP_PROXY: must look like http://proxy:3128")


def test_settings_that_exclude_each_other_are_refused_by_name(tmp_path: Path) -> None:
    assert str(refused(["--client-key", "k"], {})).startswith("--client-key: a key needs its certificate")
    headers = tmp_path / "headers"
    headers.write_text("authorization: Basic abc", encoding="utf-8")
    assert load(["--header-file", str(headers)], {}).headers == (("authorization", "Basic abc"),)
    both = refused([], {"SAM2_MCP_HEADER_FILE": str(headers), "SAM2_MCP_TOKEN": "word"})
    assert str(both).startswith("SAM2_MCP_HEADER_FILE: holds an Authorization header") and "abc" not in str(both)
    assert "must be 1 or 0" in str(refused([], {"SAM2_MCP_PROXY_FROM_ENV": "maybe"}))
