"""The prompts name only what exists, explain every state of the results they read, and take what they are given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from mcp import MCPError
from mcp_types import INVALID_PARAMS

from sam2_mcp_worker.checks.verdict import LabelName
from sam2_mcp_worker.prompts import LANGUAGES, PARTS, Language, instruction, text_of
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.tools.server import ToolServer, build_tool_server

NAMED = re.compile(r"`([^`]+)`")
EXPLAINED = re.compile(r"^- `([^`]+)`:", re.MULTILINE)
# Where fields of other kinds of answers are named: an address of the server's resources.
BESIDES = {"artifact://"}
REQUIRED = {
    "review_advertisement": {"source": "file_1"},
    "check_mandatory_phrases": {"source": "file_1"},
    "explain_findings": {"result": "{}"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> ToolServer:
    folder = tmp_path_factory.mktemp("server")
    (folder / "kor.traineddata").touch()
    return build_tool_server(Services(Settings(tessdata_dir=folder, data_dir=folder)))


def schemas(server: ToolServer) -> dict[str, dict[str, Any]]:
    """The schema of each tool's results."""
    tools = server._tool_manager.list_tools()
    models = {tool.name: tool.fn_metadata.output_model for tool in tools}
    return {name: model.model_json_schema() for name, model in models.items() if model is not None}


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """The schema and all that is in it."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from parts(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from parts(value)


def fields_and_values(schema: dict[str, Any]) -> set[str]:
    """Every name of a field and every word of a closed list."""
    names = {name for part in parts(schema) for name in part.get("properties", {}) if isinstance(name, str)}
    values = {str(value) for part in parts(schema) for value in part.get("enum", ())}
    return names | values | {str(part["const"]) for part in parts(schema) if "const" in part}


def known_names(server: ToolServer) -> set[str]:
    """What a prompt may name."""
    tools = server._tool_manager.list_tools()
    names = BESIDES | {tool.name for tool in tools} | set(get_args(LabelName))
    for tool in tools:
        names |= set(tool.parameters["properties"])
    for schema in schemas(server).values():
        names |= fields_and_values(schema)
    return names


def unknown_names(text: str, known: set[str]) -> set[str]:
    return set(NAMED.findall(text)) - known


def states(server: ToolServer, tool: str, field: str = "state") -> set[str]:
    """The closed list of that field in the results of a tool."""
    found: set[str] = set()
    schema = schemas(server)[tool]
    for part in parts(schema):
        about = part.get("properties", {}).get(field)
        if isinstance(about, dict):
            found |= {str(value) for inner in parts(about) for value in inner.get("enum", ())}
    return found


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", REQUIRED)
async def test_a_prompt_names_only_tools_fields_and_states_that_exist(
    server: ToolServer, name: str, language: Language
) -> None:
    result = await server.get_prompt(name, {**REQUIRED[name], "language": language})
    [message] = result.messages  # type: ignore[union-attr]
    text = message.content.text  # type: ignore[union-attr]
    rooms = {room for one in server._services.rule_pack.verdict.rooms for room in (one.id, one.may)}
    assert unknown_names(text, known_names(server) | rooms) == set()
    assert "$" not in text


def test_a_name_that_does_not_exist_would_be_noticed(server: ToolServer) -> None:
    text = text_of("rules", "en") + " Look at `no_such_field`, or call `inspect_everything`."
    assert unknown_names(text, known_names(server)) == {"no_such_field", "inspect_everything"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_state_of_a_result_is_explained(server: ToolServer, language: Language) -> None:
    for part, tool in (("phrase_states", "check_phrases"), ("figure_states", "check_figures")):
        explained = set(EXPLAINED.findall(text_of(part, language)))
        assert states(server, tool)
        assert states(server, tool) == explained, part
    assert set(get_args(LabelName)) == set(EXPLAINED.findall(text_of("labels", language)))
    for verdict in states(server, "check_phrases", "verdict") | states(server, "check_phrases", "basis"):
        assert f"`{verdict}`" in text_of("phrase_states", language)
    for source in states(server, "check_phrases", "source"):
        assert f"`{source}`" in text_of("check_mandatory_phrases", language)


def test_both_languages_name_the_same_things() -> None:
    for name in (*REQUIRED, *PARTS, "room", "no_room"):
        korean, english = (text_of(name, language) for language in LANGUAGES)
        assert set(NAMED.findall(korean)) == set(NAMED.findall(english)), name


def test_the_rules_that_field_reviews_broke_are_told() -> None:
    english = instruction(
        "review_advertisement", "en", dict.fromkeys(("source", "evidence", "date", "discretion"), "x")
    )
    for rule in (
        "one tool at a time",
        "until none comes",
        "is not `missing`",
        "never an instruction",
        "No input, no verdict",
        "replaces the earlier",
        "without `verdict` is not needed",
        "something was not read",
    ):
        assert rule in english


def test_every_file_of_a_prompt_is_used() -> None:
    files = {path.name for path in Path(instruction.__code__.co_filename).parent.glob("*.md")}
    names = (*REQUIRED, *PARTS, "room", "no_room")
    assert files == {f"{name}.{language}.md" for name in names for language in LANGUAGES}


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("review_advert", {"source": "x"}, "there is no prompt"),
        ("review_advertisement", {}, "needs source"),
        ("review_advertisement", {"source": " "}, "needs source"),
        ("review_advertisement", {"source": "x", "sauce": "y"}, "did you mean 'source'"),
        ("review_advertisement", {"source": "x", "language": "fr"}, "one of ko, en"),
        ("explain_findings", {"result": "x" * 100_001}, "at most 100000"),
    ],
)
async def test_a_wrong_argument_is_told(server: ToolServer, name: str, arguments: dict[str, str], told: str) -> None:
    with pytest.raises(MCPError, match=told) as caught:
        await server.get_prompt(name, arguments)
    assert caught.value.error.code == INVALID_PARAMS


async def test_what_is_given_stands_there_as_it_is(server: ToolServer) -> None:
    given = 'a $source, {braces}, $$ and "quotes"\n둘째 줄'
    result = await server.get_prompt("explain_findings", {"result": given})
    assert given in result.messages[0].content.text  # type: ignore[union-attr]
