"""The pytest plugin: `pytest --diagnose` looks at the training in all tests, the fixture `diagnose` at one test's.

Without either, nothing of the library is imported but `diagnostics` itself, which imports no framework.
"""

from __future__ import annotations

import dataclasses
import difflib
import traceback
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from .finding import SEVERITIES, Finding, Severity

if TYPE_CHECKING:
    from .report import Report

_Result = TypeVar("_Result")


class Diagnosis:
    """What the library sees of one test. The fixture `diagnose` is one.

    def test_the_classifier_trains(diagnose):
        train(epochs=1)
        diagnose.raise_if("warning")
    """

    def __init__(self, name: str, accepted: Mapping[str, str]) -> None:
        """Look on from now on.

        Args:
            name: of the test.
            accepted: why, by rule, for the rules whose findings are left out.
        """
        from .running import Run

        self._name, self._accepted = name, accepted
        self._run = Run()
        self._explained: list[Report] = []

    @property
    def reports(self) -> tuple[Report, ...]:
        """One report for each training that was examined, then one for each that was watched, as far as it is."""
        return tuple(self._without_accepted(report) for report in self._all())

    def report(self) -> Report:
        """Return what was found so far as one report; of several findings of one rule, the first."""
        from .report import Report

        found: dict[str, Finding] = {}
        for report in self.reports:
            for finding in report.findings:
                found.setdefault(finding.rule, finding)
        faults = [*self._run.faults, *(fault for report in self._all() for fault in report.faults)]
        return Report(
            f"diagnosed {self._name}", findings=tuple(found.values()), faults=tuple(dict.fromkeys(faults))
        )

    def raise_if(self, severity: Severity = "error") -> None:
        """Raise `FindingsPresent` if there is a finding so far that is at least as bad as `severity`.

        Raises:
            InvalidInput: `severity` is not one of error, warning, note.
        """
        self.report().raise_if(severity)

    def explain(self, error: BaseException) -> None:
        """Take what is known of the exception that ended the test."""
        from .explanation import explain

        try:
            self._explained = [explain(error)]
        except Exception as fault:
            self._run.faults.append("".join(traceback.format_exception(fault)).strip())

    def close(self) -> None:
        """Look no more: all hooks are gone. The reports can still be had."""
        self._run.close()

    def accepted(self) -> dict[str, str]:
        """Return why, by rule, for the rules that were found, and were left out."""
        found = {finding.rule for report in self._all() for finding in report.findings}
        return {rule: why for rule, why in self._accepted.items() if rule in found}

    def _all(self) -> list[Report]:
        return [*self._explained, *self._run.examined, *self._run.watched()]

    def _without_accepted(self, report: Report) -> Report:
        kept = tuple(finding for finding in report.findings if finding.rule not in self._accepted)
        return dataclasses.replace(report, findings=kept)


_DIAGNOSIS = pytest.StashKey[Diagnosis]()
_ACCEPTED = pytest.StashKey[dict[str, str]]()  # by the whole project


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the options."""
    group = parser.getgroup("diagnose", "what is wrong with the training that tests do (diagnostics)")
    group.addoption(
        "--diagnose",
        action="store_true",
        help="Examine and watch whatever training each test does, and say what is wrong with it.",
    )
    group.addoption(
        "--diagnose-fail-on",
        choices=("error", "warning", "never"),
        default="error",
        help="Fail a test that passes if its training has findings so bad. Default: error.",
    )
    parser.addini(
        "diagnose_ignore", type="linelist", help="Findings that are accepted, a line each: 'RULE: the reason'."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin, if it is asked for."""
    config.addinivalue_line(
        "markers", "diagnose(ignore, reason): accept findings of these rules in the training that this test does."
    )
    if config.getoption("--diagnose"):
        _accepted_everywhere(config)
        config.pluginmanager.register(_EveryTest(config.getoption("--diagnose-fail-on")), "diagnose every test")


@pytest.fixture
def diagnose(request: pytest.FixtureRequest) -> Iterator[Diagnosis]:
    """Look at the training that this test does: `report()`, `reports` and `raise_if("error")`."""
    item = request.node
    if _DIAGNOSIS in item.stash:
        yield item.stash[_DIAGNOSIS]
        return
    _begin(item)
    yield item.stash[_DIAGNOSIS]
    _end(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what was found to the test's report. pytest shows it of tests that fail, and with -rP of all."""
    report = yield
    diagnosis = item.stash.get(_DIAGNOSIS, None)
    if diagnosis is not None and (call.when == "call" or (call.when == "setup" and report.failed)):
        diagnosis.close()
        if report.failed and call.excinfo is not None:
            diagnosis.explain(call.excinfo.value)
        _add(diagnosis, report)
    return report


class _EveryTest:
    """What `--diagnose` adds."""

    def __init__(self, fail_on: str) -> None:
        self._failing = SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on in SEVERITIES else ()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, _Result, _Result]:
        """Leave nothing behind, however the test ends."""
        try:
            return (yield)
        finally:
            _end(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin before the fixtures, which may train too."""
        _end(item)  # it may be run again
        _begin(item)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, _Result, _Result]:
        """Fail a test that passed."""
        result = yield
        diagnosis = item.stash[_DIAGNOSIS]
        diagnosis.close()
        bad = [finding for finding in diagnosis.report().findings if finding.severity in self._failing]
        if bad:
            pytest.fail(f"the test passes, but not its training: {_names(bad)}", pytrace=False)
        return result

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name what fails no test."""
        told = {
            report.nodeid: ", ".join(words)
            for report in terminalreporter.getreports("passed")
            if (words := [str(value) for key, value in report.user_properties if key == "diagnose"])
        }
        if told:
            terminalreporter.section("diagnose: passed with findings (-rP shows them)", "-")
        for test, found in told.items():
            terminalreporter.write_line(f"{test}: {found}")


def _begin(item: pytest.Item) -> None:
    item.stash[_DIAGNOSIS] = Diagnosis(item.name, _accepted_everywhere(item.config) | _accepted_by_mark(item))


def _end(item: pytest.Item) -> None:
    if _DIAGNOSIS in item.stash:
        item.stash[_DIAGNOSIS].close()
        del item.stash[_DIAGNOSIS]  # and with it the models


def _add(diagnosis: Diagnosis, to: pytest.TestReport) -> None:
    said, accepted = diagnosis.report(), diagnosis.accepted()
    worth_a_line = [finding for finding in said.findings if finding.severity != "note"]
    to.user_properties += [("diagnose", _names([finding])) for finding in worth_a_line]
    lines = [f"accepted: {rule} ({why})" for rule, why in accepted.items()]
    if said.findings or said.faults:
        lines.insert(0, str(said))
    if lines:
        to.sections.append(("diagnose", "\n".join(lines)))


def _names(findings: Iterable[Finding]) -> str:
    return ", ".join(f"{finding.rule} ({finding.severity})" for finding in findings)


def _accepted_everywhere(config: pytest.Config) -> dict[str, str]:
    if _ACCEPTED not in config.stash:
        accepted = {}
        for line in config.getini("diagnose_ignore"):
            rule, _, why = (part.strip() for part in line.partition(":"))
            if mistake := _mistake(rule, why):
                raise pytest.UsageError(f"diagnose_ignore holds {line!r}: {mistake}. Write 'RULE: the reason'.")
            accepted[rule] = why
        config.stash[_ACCEPTED] = accepted
    return config.stash[_ACCEPTED]


def _accepted_by_mark(item: pytest.Item) -> dict[str, str]:
    accepted: dict[str, str] = {}
    for mark in item.iter_markers("diagnose"):
        if mistake := _mistake_in(mark):
            given = ", ".join([*map(repr, mark.args), *(f"{key}={value!r}" for key, value in mark.kwargs.items())])
            usage = 'Write @pytest.mark.diagnose(ignore=["RULE"], reason="…").'
            pytest.fail(f"@pytest.mark.diagnose({given}): {mistake}. {usage}", pytrace=False)
        accepted |= dict.fromkeys(mark.kwargs["ignore"], mark.kwargs["reason"])
    return accepted


def _mistake_in(mark: pytest.Mark) -> str:
    rules, why = mark.kwargs.get("ignore"), mark.kwargs.get("reason", "")
    if mark.args or set(mark.kwargs) - {"ignore", "reason"}:
        return "it takes ignore and reason, by name"
    if not isinstance(rules, list | tuple) or not rules:
        return "ignore is no list of rules"
    return next(filter(None, (_mistake(rule, why) for rule in rules)), "")


def _mistake(rule: Any, why: Any) -> str:
    from .rule import all_rules

    names = [known.name for known in all_rules()]
    if rule not in names:
        near = difflib.get_close_matches(str(rule), names, n=1)
        hint = f"did you mean {near[0]!r}" if near else "`diagnose rules` lists them"
        return f"there is no rule {rule!r}; {hint}"
    return "" if isinstance(why, str) and why.strip() else f"it gives no reason for accepting {rule}"
