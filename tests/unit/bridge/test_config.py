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
        ("SAM2_MCP_DEADLINE_S", "3601", "must be from 0.1 to 3600"),
        ("SAM2_MCP_MAX_PARALLEL_CALLS", "0", "must be from 1 to 64"),
        ("SAM2_MCP_DEADLINE_S", "nan", "must be from"),
        ("SAM2_MCP_DEADLINE_S", "soon", "could not convert"),
        ("SAM2_MCP_MAX_ANSWER_BYTES", "16777216", "must be from 32768 to 16776192"),
        ("SAM2_MCP_MAX_ANSWER_BYTES", "8M", "invalid literal"),
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


@pytest.mark.parametrize("wrong", ["none", "file", "/", "nul\0"])
def test_what_is_no_folder_or_too_much_cannot_be_shared(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    error = refused(["--share", str(tmp_path / wrong)], {})
    assert error.exit_code == 2 and str(error).startswith("--share: ")


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
        assert all(name in out for name in ("SAM2_MCP_URL", "--token-file", "--deadline", "--profile"))
    else:
        assert out == "" and "usage: sam2-mcp" in err
