"""torch-audit: `autopatch(model, optimizer=...)`, its "zero-touch mode", with every step audited.

Its README audits every thousandth step, and says to set 1 for each: no script here has a thousand. The callback
for the Hugging Face Trainer that its repository shows is not in the release.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch_audit import autopatch

from tests.scoreboard.answers import Answers
from tests.scoreboard.script import Script

SEVERITIES = {"INFO": "note", "WARN": "warning", "ERROR": "error", "FATAL": "error"}


@contextmanager
def asked(script: Script, answers: Answers) -> Iterator[None]:
    auditor = autopatch(script.model, optimizer=script.optimizer, every_n_steps=1, run_static=True, run_init=True)
    try:
        yield
    finally:
        result = auditor.finish()
        auditor.unpatch()
        for finding in result.findings:
            where = f" [{finding.module_path}]" if finding.module_path else ""
            title = result.rules[finding.rule_id].title if finding.rule_id in result.rules else ""
            kind = f"{finding.rule_id} {title}".strip()
            answers.add(kind, SEVERITIES[finding.severity.value], f"{finding.message}{where}")
