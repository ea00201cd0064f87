"""Recorded answers of the real API, replayed; and the recording itself, tried on the scripted Claude.

Nothing here asks the real API. Where no answers are stored, the tests of what it says are skipped and say so.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.fakes.claude_pages import TruePage
from tests.fakes.claude_rules import NATIVE_SIDE_PX, NATIVE_TOKENS, SentPicture
from tests.fakes.claude_script import Script
from tests.fakes.claude_server import claude_server
from tests.record.__main__ import main
from tests.record.gateway import Replay, replaying
from tests.record.inputs import RecordedInput, inputs
from tests.record.probes import probes
from tests.record.run import record_answers, record_edges, recording_settings
from tests.record.stored import FOLDER, Recorded, clean, load

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.claude import build_claude
from sam2_mcp_worker.engines.ports import Sight, VisionModel

NONE_STORED = "no recorded answers: `make record-claude` with ANTHROPIC_API_KEY stores them"
REPLAY_KEY = "sk-ant-replay"
# Of the printed characters; a model that reads less than this of large clean print reads another picture.
READ_SHARE = 0.9
TAKEN = {"plain", "schema plain", "guarded, fits"}
INPUTS = {item.name: item for item in inputs()}
STORED = list(load())


async def replay_one(replay: Replay, item: RecordedInput, model: VisionModel, folder: Path) -> Sight:
    replay.name = item.name
    vision = build_claude(recording_settings(replay.url, REPLAY_KEY, folder, item.max_tokens))
    try:
        return await vision.look(item.tile(folder), item.wanted, model=model, deadline=Deadline.after(60))
    finally:
        await vision.close()


def model_of(answer: Recorded) -> VisionModel:
    return "fast" if "haiku" in answer.asked.model else "accurate"


def read_share(page: TruePage, item: RecordedInput, sight: Sight) -> float:
    """Share of the characters of lines wholly inside that are in what was read."""
    x0, y0, x1, y1 = item.box
    inside = [
        line.text
        for line in page.lines
        if line.box[0] >= x0 and line.box[1] >= y0 and line.box[2] <= x1 and line.box[3] <= y1
    ]
    true, read = "".join(inside).replace(" ", ""), "".join(line.text for line in sight.lines).replace(" ", "")
    blocks = difflib.SequenceMatcher(None, true, read, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / len(true) if true else 1.0


@pytest.mark.parametrize("answer", STORED or [None], ids=lambda one: f"{one.name}-{one.asked.model}" if one else "none")
async def test_the_engine_understands_what_the_real_api_said(answer: Recorded | None, tmp_path: Path) -> None:
    if answer is None:
        pytest.skip(NONE_STORED)
    item = INPUTS.get(answer.name)
    if item is None:
        pytest.skip("recorded for an input that is gone: delete the file or record again")
    with replaying([answer]) as replay:
        try:
            sight = await replay_one(replay, item, model_of(answer), tmp_path)
        except Exception:
            if replay.stale:
                pytest.skip(f"stale: {replay.stale}; `make record-claude` records anew")
            raise
    assert sight.dropped == 0
    assert (sight.cut == "tokens") == (item.name == "cut")
    assert {region.label for region in sight.regions} <= set(item.labels)
    if not sight.cut:
        assert read_share(item.page, item, sight) >= READ_SHARE


@pytest.mark.skipif(not STORED, reason=NONE_STORED)
def test_no_stored_answer_holds_a_key() -> None:
    for path in FOLDER.glob("*.json"):
        clean(path.read_text(encoding="utf-8"), "")


def test_every_input_and_model_is_recorded() -> None:
    if not STORED:
        pytest.skip(NONE_STORED)
    wanted = {(item.name, model) for item in INPUTS.values() for model in item.models}
    assert {(answer.name, model_of(answer)) for answer in STORED} == wanted


def test_the_scripted_claude_refuses_what_the_real_api_refuses() -> None:
    path = FOLDER / "probes.json"
    if not path.exists():
        pytest.skip(NONE_STORED)
    said = json.loads(path.read_text(encoding="utf-8"))
    with claude_server() as fake, _client(fake.url, fake.script.key) as client:
        for name, body in probes(said["model"]):
            ours, real = client.post("/v1/messages", json=body).status_code, said["probes"][name]
            assert ours == real["status"], (name, real["message"])


def test_pictures_that_are_not_scaled_count_as_the_scripted_claude_counts_them() -> None:
    path = FOLDER / "tokens.json"
    if not path.exists():
        pytest.skip(NONE_STORED)
    counted = json.loads(path.read_text(encoding="utf-8"))["pictures"]
    smallest = next(one["input_tokens"] for one in counted if one["width_px"] == 1)
    for one in counted:
        ours = SentPicture("", b"", one["width_px"], one["height_px"])
        if max(one["width_px"], one["height_px"]) <= NATIVE_SIDE_PX and ours.tokens <= NATIVE_TOKENS:
            assert one["input_tokens"] - smallest == pytest.approx(ours.tokens - 1, rel=0.05, abs=2)


def _client(url: str, key: str) -> httpx.Client:
    headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}
    return httpx.Client(base_url=url, headers=headers, timeout=30, trust_env=False)


async def test_a_recording_is_played_back_as_it_came_and_holds_no_key(tmp_path: Path) -> None:
    items = [INPUTS["leaflet"], INPUTS["cut"]]
    stored = tmp_path / "answers"
    stored.mkdir()
    with claude_server([item.page for item in items], Script(key=REPLAY_KEY)) as fake:
        written, failures = await record_answers(items, fake.url, fake.script.key, stored, tmp_path)
        assert not failures and len(written) == 3
        live = await replay_one(_as_replay(fake.url), items[0], "fast", tmp_path)
    assert not any(fake.script.key in path.read_text(encoding="utf-8") for path in written)
    with replaying(load(stored)) as replay:
        sight = await replay_one(replay, items[0], "fast", tmp_path)
        assert sight == live and sight.lines and not replay.stale
        assert (await replay_one(replay, items[1], "fast", tmp_path)).cut == "tokens"
        assert read_share(items[0].page, items[0], sight) == 1


def _as_replay(url: str) -> Replay:
    return Replay({}, url)


async def test_a_recording_of_another_prompt_is_stale_and_says_so(tmp_path: Path) -> None:
    item = INPUTS["narrow"]
    with claude_server([item.page]) as fake:
        await record_answers([item], fake.url, fake.script.key, tmp_path, tmp_path)
    old = next(load(tmp_path))
    changed = dataclasses.replace(old, asked=dataclasses.replace(old.asked, prompt="another"))
    with replaying([changed]) as replay:
        with pytest.raises(Exception, match="model"):
            await replay_one(replay, item, "fast", tmp_path)
        assert replay.stale == {f"narrow.{old.asked.model}": "recorded with another prompt"}


async def test_failed_requests_are_told_and_not_stored(tmp_path: Path) -> None:
    item = INPUTS["narrow"]
    with claude_server([item.page]) as fake:
        written, failures = await record_answers([item], fake.url, "sk-other", tmp_path, tmp_path)
    assert not written and failures and "sk-other" not in "".join(failures)


def test_the_edges_of_the_api_are_recorded(tmp_path: Path) -> None:
    with claude_server() as fake:
        record_edges(fake.url, fake.script.key, tmp_path)
    said: dict[str, Any] = json.loads((tmp_path / "probes.json").read_text(encoding="utf-8"))["probes"]
    assert {name for name, outcome in said.items() if outcome["status"] == 200} == TAKEN
    assert said["guarded, too large"]["status"] == 400 and said["unknown model"]["status"] == 404
    tokens = json.loads((tmp_path / "tokens.json").read_text(encoding="utf-8"))["pictures"]
    assert len(tokens) == 11 and all(one["status"] == 200 for one in tokens)


def test_an_answer_with_a_key_in_it_is_never_stored() -> None:
    for text in ("my-secret-key is here", "sk-ant-api03-abc"):
        with pytest.raises(ValueError, match="holds a key"):
            clean(text, "my-secret-key")
    assert clean("msg_01AbCdEfGh req_01AbCdEfGh msg", "k") == "msg_recorded req_recorded msg"


def test_without_a_key_nothing_is_sent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    assert main([]) == 2
    assert "nothing was sent" in capsys.readouterr().err


def test_the_command_stores_what_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with claude_server([INPUTS["narrow"].page]) as fake:
        monkeypatch.setenv("ANTHROPIC_API_KEY", fake.script.key)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
        assert main(["--only", "narrow", "--into", str(tmp_path)]) == 0
    assert [answer.name for answer in load(tmp_path)] == ["narrow"]
    assert fake.script.key not in capsys.readouterr().out
