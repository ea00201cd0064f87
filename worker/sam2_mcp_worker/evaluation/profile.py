"""How a workflow endpoint is spoken to: what is sent, and what its events and logs mean.

The defaults are XGEN's as its public predecessor has them (X2bee/PlateeRAG_backend, 2025-10: controller/workflow,
WorkflowRequest; events `data`, `end`, `error`, `cancelled`; GET io_logs). Newer servers differ: a case file's
[workflow] says how. No secret stands here: a bearer token comes from the environment only.
"""

from __future__ import annotations

import json
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sam2_mcp_worker.checks.findings import FindingKind
from sam2_mcp_worker.checks.verdict import LabelName

RUN_MARK = "{run_id}"
INPUT_MARK = "{input}"

# What the agent is asked to end with, so that its answer can be read without guessing.
ANSWER_FORM = f"""

실행 번호 / run: {RUN_MARK}
심의 의견을 300자 이상으로 설명한 다음, 마지막에 아래 형식의 JSON 블록 하나를 그대로 붙이세요.
After an explanation of at least 300 characters, end with exactly one JSON block of this form:
```json
{{"run": "{RUN_MARK}", "label": "{" | ".join(get_args(LabelName))}", "findings": [{{"kind": "...", "about": "..."}}]}}
```
kind: {", ".join(get_args(FindingKind))}
about: 문구, 숫자 또는 규칙 하나를 그대로 / the one phrase, figure or rule, word for word"""


class WorkflowProfile(BaseModel):
    """Templates may hold {run_id}, {input} and {source} names.

    `id_fields` are those of an event that name the run it belongs to, wherever they stand in it. `echo_path` answers
    with what the workflow received under a run id; "" where there is nothing of the kind. `tools_path` answers with
    the tools that the workflow's agent has (`{"tools": [{"name": ...}]}`); "" where nothing tells.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    path: str = "/api/workflow/execute/based_id/stream"
    body: dict[str, Any] = {
        "workflow_id": "",
        "workflow_name": "",
        "input_data": INPUT_MARK,
        "interaction_id": RUN_MARK,
    }
    answer_form: str = ANSWER_FORM
    text_types: list[str] = ["data"]
    text_field: str = "content"
    end_types: list[str] = ["end"]
    error_types: list[str] = ["error", "cancelled"]
    tool_types: list[str] = ["tool"]
    tool_fields: list[str] = ["tool_name", "tool", "name"]
    id_fields: list[str] = ["interaction_id", "run_id", "conversation_id"]
    echo_path: str = "/api/workflow/io_logs"
    echo_query: dict[str, str] = {"interaction_id": RUN_MARK}
    echo_list: str = "in_out_logs"
    echo_input: str = "input_data"
    tools_path: str = ""
    # A review of a long document takes an agent some minutes; between two events there is one call of 30 s at most.
    timeout_s: float = Field(600.0, gt=0)
    idle_s: float = Field(120.0, gt=0)
    # The log is written after the last event was sent.
    echo_wait_s: float = Field(10.0, gt=0)

    @model_validator(mode="after")
    def _every_run_is_its_own(self) -> WorkflowProfile:
        body = json.dumps(self.body)
        if RUN_MARK not in body:
            raise ValueError("body must hold {run_id}: runs that share a conversation cannot be told apart")
        if INPUT_MARK not in body:
            raise ValueError("body must hold {input}: the case's text would not be sent")
        if self.echo_path and RUN_MARK not in json.dumps([self.echo_path, self.echo_query]):
            raise ValueError("echo_path or echo_query must hold {run_id}: the log of all runs proves nothing about one")
        return self


def filled(template: Any, values: dict[str, str]) -> Any:
    """Put values in for `{name}` in every string of a JSON value; other braces stay."""
    if isinstance(template, dict):
        return {key: filled(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, values) for value in template]
    if isinstance(template, str):
        for name, value in values.items():
            template = template.replace("{" + name + "}", value)
    return template
