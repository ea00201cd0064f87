"""Errors with a public and a private half.

`WorkerError` is the only exception that may reach an agent. Its text follows one template:
`[code] what failed with the actual value; the rule with its numbers; the next call`. Paths, class names and
tracebacks go into `private`, which is logged and never sent. Everything else that is raised is a defect of ours.
"""

from __future__ import annotations

PUBLIC_TEXT_LIMIT = 500  # characters; hosts show only the first lines of an error


class WorkerError(Exception):
    """A failure the agent can act on.

    Args:
        code: stable snake_case name, e.g. `password_required`.
        what: what failed, with the actual value.
        rule: the rule that was broken, with its numbers.
        next_step: what to call or change next.
        private: detail for the log only.
    """

    def __init__(self, code: str, what: str, *, rule: str = "", next_step: str = "", private: str = "") -> None:
        self.code = code
        self.what = what
        self.rule = rule
        self.next_step = next_step
        self.private = private
        super().__init__(self.public_text)

    @property
    def public_text(self) -> str:
        """The text an agent sees, at most 500 characters."""
        parts = [part.strip().rstrip(".;") for part in (self.what, self.rule, self.next_step) if part.strip()]
        text = f"[{self.code}] " + "; ".join(parts) + "."
        if len(text) <= PUBLIC_TEXT_LIMIT:
            return text
        return text[: PUBLIC_TEXT_LIMIT - 1] + "…"

    @property
    def reason(self) -> str:
        """One clause for a coverage list, such as the reason why a page failed."""
        return f"{self.code}: {self.what}"[:PUBLIC_TEXT_LIMIT]

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.code, self.what, self.rule, self.next_step, self.private))


def _rebuild(code: str, what: str, rule: str, next_step: str, private: str) -> WorkerError:
    return WorkerError(code, what, rule=rule, next_step=next_step, private=private)
