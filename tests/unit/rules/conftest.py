"""Snapshots of what the rules say: `messages/<rule>.txt` holds each finding and reason of the rule's tests.

A test fails when a rule says anything that the snapshot does not hold for it. `nox -s messages` rewrites the
snapshots; the diff is read in review. So the tests themselves assert severity and evidence, not prose.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule
from diagnostics.rules.registry import all_rules

HERE = Path(__file__).parent
HEADING = "# "

said: dict[str, None] = {}
"""What the rules have said in the test that runs, in order."""
rewritten: dict[Path, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
"""By snapshot and text, the tests in which a rule said it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-messages", action="store_true", help="rewrite the snapshots of findings")


def pytest_configure(config: pytest.Config) -> None:
    selected = config.option.keyword or any("::" in argument for argument in config.args)
    if config.getoption("--update-messages", default=False) and selected:
        raise pytest.UsageError("--update-messages rewrites whole files: name whole test files, without -k or ::")


@pytest.fixture(scope="module", autouse=True)
def recorded_rules() -> Iterator[None]:
    """Record what the checks of all rules return and raise, while the tests of a module run."""
    all_rules()  # imports them
    pending = [Rule]
    with pytest.MonkeyPatch.context() as patches:
        while pending:
            rule = pending.pop()
            pending.extend(rule.__subclasses__())
            for name, method in list(vars(rule).items()):
                if name == "after_run" or getattr(method, "__is_check__", False):
                    patches.setattr(rule, name, recorded(method))
        yield


def recorded(method: Callable[..., Finding | None]) -> Callable[..., Finding | None]:
    @functools.wraps(method)
    def recording(self: Rule, *facts: Any, **named: Any) -> Finding | None:
        try:
            finding = method(self, *facts, **named)
        except NotApplicable as reason:
            if str(reason):  # otherwise another check says what is missing
                said[f"{self.name}, not applicable: {reason}"] = None
            raise
        if finding is not None:
            said[as_text(finding)] = None
        return finding

    return recording


def as_text(finding: Finding) -> str:
    lines = [f"{finding.rule}, {finding.severity}: {finding.message}"]
    for library, (fix, *alternatives) in finding.fixes.items():
        lines.append(f"fix ({library}): {fix}")
        lines.extend(f"or: {alternative}" for alternative in alternatives)
    if finding.evidence:
        lines.append(f"evidence: {', '.join(finding.evidence)}")
    return "\n".join(line.replace("\n", "\n    ") for line in lines)


@functools.cache
def snapshot(file: Path) -> dict[str, set[str]]:
    """Return by test what a snapshot holds."""
    by_test: dict[str, set[str]] = defaultdict(set)
    blocks = file.read_text().split("\n\n") if file.is_file() else []
    for lines in (block.strip("\n").split("\n") for block in blocks):
        text = "\n".join(line for line in lines if not line.startswith(HEADING))
        for heading in (line for line in lines if line.startswith(HEADING)):
            by_test[heading.removeprefix(HEADING)].add(text)
    return by_test


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Compare what the rules say in a test with the snapshot."""
    said.clear()
    yield
    file = HERE / "messages" / f"{item.path.stem.removeprefix('test_').replace('_', '-')}.txt"
    test = item.nodeid.partition("::")[2]
    if item.config.getoption("--update-messages", default=False):
        for text in said:
            rewritten[file][text].append(test)
    elif (held := snapshot(file)[test]) != said.keys():
        gone, new = held - said.keys(), said.keys() - held
        differing = [f"- {text}" for text in sorted(gone)] + [f"+ {text}" for text in sorted(new)]
        pytest.fail("\n".join([f"messages/{file.name} differs (nox -s messages):", *differing]), pytrace=False)


def pytest_sessionfinish() -> None:
    for file, tests_by_text in rewritten.items():
        file.parent.mkdir(exist_ok=True)
        blocks = ["\n".join([*(HEADING + test for test in by), text]) for text, by in tests_by_text.items()]
        file.write_text("\n\n".join(blocks) + "\n")
