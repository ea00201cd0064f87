"""Settings: what the environment says, and what must not be."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.settings import Settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in os.environ:
        if name.startswith("SAM2_MCP_") or name == "TESSDATA_PREFIX":
            monkeypatch.delenv(name)
    yield


def test_lists_come_with_commas_and_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAM2_MCP_ALLOWED_HOSTS", " worker:8765, host.docker.internal,, ")
    assert Settings().allowed_hosts == ("worker:8765", "host.docker.internal")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "myhost"])
def test_an_address_beyond_loopback_needs_a_token(host: str) -> None:
    with pytest.raises(WorkerError, match="SAM2_MCP_TOKEN") as caught:
        Settings(host=host).check_bind()
    assert caught.value.code == "token_required"
    Settings(host=host, token="t").check_bind()  # type: ignore[arg-type]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_loopback_needs_none(host: str) -> None:
    Settings(host=host).check_bind()


def test_the_token_comes_from_the_variable_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(" from-file \n", encoding="utf-8")
    assert Settings().read_token() is None
    assert Settings(token_file=file).read_token() == "from-file"
    assert Settings(token="from-variable", token_file=file).read_token() == "from-variable"  # type: ignore[arg-type]


def test_a_token_file_that_is_missing_or_empty_is_an_error_not_an_open_door(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="cannot be read"):
        Settings(token_file=tmp_path / "none").read_token()
    (tmp_path / "empty").write_text("\n", encoding="utf-8")
    with pytest.raises(WorkerError, match="is empty"):
        Settings(token_file=tmp_path / "empty").read_token()


def test_the_token_is_not_in_the_repr() -> None:
    assert "s3cret" not in repr(Settings(token="s3cret"))  # type: ignore[arg-type]


def test_language_data_is_found_where_the_setting_says(tmp_path: Path) -> None:
    (tmp_path / "kor.traineddata").write_bytes(b"x")
    assert Settings(tessdata_dir=tmp_path).find_tessdata() == tmp_path
    with pytest.raises(WorkerError, match=r"jpn\.traineddata") as caught:
        Settings(tessdata_dir=tmp_path, ocr_languages=("kor", "jpn")).find_tessdata()
    assert "SAM2_MCP_TESSDATA_DIR" in caught.value.public_text


def test_language_data_is_searched_in_the_usual_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kor.traineddata").write_bytes(b"x")
    monkeypatch.setenv("TESSDATA_PREFIX", str(tmp_path))
    assert Settings().find_tessdata() == tmp_path


def test_a_margin_longer_than_the_budget_is_refused() -> None:
    with pytest.raises(ValidationError, match="shorter"):
        Settings(call_budget_s=1, reply_margin_s=2)


def test_there_is_one_reader_per_core_unless_told_otherwise() -> None:
    assert Settings(ocr_processes=7).ocr_process_count == 7
    assert 1 <= Settings().ocr_process_count <= 4


def test_the_key_of_claude_comes_from_its_own_variable_and_an_empty_one_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", " ")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "")
    unset = Settings()
    assert unset.anthropic_api_key is None
    assert unset.anthropic_base_url is None
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-of-nothing")
    monkeypatch.setenv("SAM2_MCP_CLAUDE_FAST_USD_PER_MTOK", "0.2, 1")
    found = Settings()
    assert found.anthropic_api_key is not None
    assert found.anthropic_api_key.get_secret_value() == "sk-test-of-nothing"
    assert "sk-test-of-nothing" not in repr(found)
    assert found.claude_fast_usd_per_mtok == (0.2, 1.0)


@pytest.mark.parametrize("field", ["claude_daily_cap_usd", "claude_fast_usd_per_mtok", "claude_accurate_usd_per_mtok"])
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "1e300", "much"])
def test_what_is_no_amount_of_money_is_refused(field: str, value: str) -> None:
    with pytest.raises(ValidationError):
        Settings(**{field: value if field.endswith("cap_usd") else f"{value},1"})
