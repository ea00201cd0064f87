"""The MCP prompts: how an agent reviews an advertisement with our tools, in Korean or English.

Owns their arguments and how these get into the text; the texts themselves are in ../prompts.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args

from mcp import MCPError
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.prompts.base import Prompt
from mcp_types import INVALID_PARAMS
from pydantic import Field

from sam2_mcp_worker.prompts import LANGUAGES, Language, instruction, text_of
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.tools.icons import icons_of_tool

# The whole result of a tool fits (SAM2_MCP_RESULT_MAX_CHARS and what stands around it); a pasted document does not.
MAX_VALUE_CHARS = 100_000
NOTHING = {"ko": "(없음)", "en": "(none)"}

LanguageArgument = Annotated[str, Field(description="ko (default) or en")]
SourceArgument = Annotated[str, Field(description="The advertisement: file_... handle, path or https URL")]


def register(server: MCPServer[Any], services: Services) -> None:
    """Add the prompts to the server."""

    @server.prompt(
        "review_advertisement",
        title="Review an advertisement",
        description="First review of an advertisement: read it, judge phrases and figures, report with a label.",
        icons=icons_of_tool("inspect_image"),
    )
    def review_advertisement(
        source: SourceArgument,
        evidence: Annotated[str, Field(description="Files to hold the figures against, separated by commas")] = "",
        date: Annotated[str, Field(description="Day of publication, YYYY-MM-DD")] = "",
        language: LanguageArgument = "ko",
    ) -> str:
        return _text(services, "review_advertisement", language, source=source, evidence=evidence, date=date)

    @server.prompt(
        "check_mandatory_phrases",
        title="Check mandatory phrases",
        description="Whether phrases stand in a document, picture, video or recording, and where.",
        icons=icons_of_tool("check_phrases"),
    )
    def check_mandatory_phrases(
        source: SourceArgument,
        phrases: Annotated[str, Field(description="One phrase a line; left out: the rule pack's")] = "",
        language: LanguageArgument = "ko",
    ) -> str:
        return _text(services, "check_mandatory_phrases", language, source=source, phrases=phrases)

    @server.prompt(
        "explain_findings",
        title="Explain findings",
        description="A result of these tools in plain words, nothing added.",
        icons=icons_of_tool("read_text"),
    )
    def explain_findings(
        result: Annotated[str, Field(description="The result as the tool returned it")],
        language: LanguageArgument = "ko",
    ) -> str:
        return _text(services, "explain_findings", language, result=result)


def check_arguments(prompts: Sequence[Prompt], name: str, arguments: Mapping[str, Any] | None) -> None:
    """Refuse what the SDK would answer as an internal error, or not notice at all.

    Raises:
        MCPError: INVALID_PARAMS, with what to do instead.
    """
    known = {prompt.name: prompt.arguments or [] for prompt in prompts}
    if name not in known:
        raise _invalid(f"there is no prompt {name[:80]!r}; there are {', '.join(known)}")
    accepted = [argument.name for argument in known[name]]
    for argument in arguments or {}:
        if argument not in accepted:
            close = difflib.get_close_matches(argument, accepted, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it takes {', '.join(accepted)}"
            raise _invalid(f"{name} has no argument {argument[:60]!r}: {hint}")
    missing = [item.name for item in known[name] if item.required and not (arguments or {}).get(item.name, "").strip()]
    if missing:
        raise _invalid(f"{name} needs {', '.join(missing)}")


def _text(services: Services, name: str, language: str, **values: str) -> str:
    known: Mapping[str, Language] = {one: one for one in LANGUAGES}
    code = known.get(language.strip().casefold() or LANGUAGES[0])
    if code is None:
        raise _invalid(f"language is {language[:20]!r}; it is one of {', '.join(get_args(Language))}")
    for key, value in values.items():
        if len(value) > MAX_VALUE_CHARS:
            raise _invalid(f"{key} has {len(value)} characters; at most {MAX_VALUE_CHARS} fit into a prompt")
    shown = {key: value.strip() or NOTHING[code] for key, value in values.items()}
    return instruction(name, code, {**shown, "discretion": _discretion(services, code)})


def _invalid(what: str) -> MCPError:
    return MCPError(code=INVALID_PARAMS, message=what)


def _discretion(services: Services, language: Language) -> str:
    """Where the rule pack leaves room for a reviewer; the operator says so, and only a person may use it."""
    rooms = services.rule_pack.verdict.rooms
    listed = [f"- {room.id} (`{room.may}`): {room.what}" for room in rooms]
    return "\n".join([text_of("room", language), "", *listed]) if rooms else text_of("no_room", language)
