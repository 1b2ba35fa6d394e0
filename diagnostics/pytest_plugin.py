"""The pytest plugin: `pytest --diagnose` observes the training of every test, the fixture `diagnose` that of one.

The fixtures `loader_checks` and `gradient_checks` hold checks that a test calls.

Without either, only `diagnostics` itself is imported, which imports no framework.
"""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

import pytest

from .engine.finding import SEVERITIES, Finding, Severity
from .errors import InvalidInput, ends_at_the_caller

if TYPE_CHECKING:
    from .api.checks.gradients import GradientChecks
    from .api.checks.loaders import LoaderChecks
    from .api.checks.result import CheckResult
    from .report.policy import Policy
    from .report.report import Report

__tracebackhide__ = ends_at_the_caller

_Result = TypeVar("_Result")


class Diagnosis:
    """Observes the training of one test. The fixture `diagnose` is one.

    def test_the_classifier_trains(diagnose):
        train(epochs=1)
        diagnose.raise_if("warning")
    """

    def __init__(self, name: str, everywhere: Policy, here: Mapping[str, str]) -> None:
        """Start observing.

        Args:
            name: of the test.
            everywhere: the settings of the project, for all tests.
            here: rules ignored in this test; the report names those that found nothing.
        """
        from .run.observer import ScriptObserver

        self._name, self._everywhere, self._here = name, everywhere, here
        self._run = ScriptObserver()
        self._explained: Report | None = None

    @property
    def reports(self) -> tuple[Report, ...]:
        """One report for each training that was examined, then one for each that was watched, up to now."""
        return (*self._run.examined, *self._run.watched())

    def report(self) -> Report:
        """Return one report of everything found so far, grouped by cause."""
        from .report.merge import merged

        policy = self._everywhere.ignoring(self._here)
        title = f"diagnosed {self._name}"
        report = merged(title, self._run.reports(), self._explained, policy=policy, faults=self._run.faults)
        in_vain = tuple(rule for rule in report.ignored_in_vain if rule in self._here)
        return dataclasses.replace(report, ignored_in_vain=in_vain)

    def raise_if(self, severity: Severity = "error") -> None:
        """Raise `FindingsPresent` if there is a finding of at least this severity so far.

        Raises:
            InvalidInput: `severity` is not one of error, warning, note.
        """
        self.report().raise_if(severity)

    def explain(self, error: BaseException) -> None:
        """Explain the exception that ended the test, if a rule knows it."""
        from .api.explain import explanation_of

        try:
            explained = explanation_of(error)
        except Exception as fault:
            self._run.faults.append("".join(traceback.format_exception(fault)).strip())
            return
        if explained.findings or explained.faults:
            self._explained = dataclasses.replace(explained, crash=None)  # pytest shows the exception

    def close(self) -> None:
        """Remove all hooks. The reports remain available."""
        self._run.close()


_DIAGNOSIS = pytest.StashKey[Diagnosis]()
_POLICY = pytest.StashKey["Policy"]()  # in all tests


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("diagnose", "find bugs in the training that tests run (diagnostics)")
    group.addoption(
        "--diagnose",
        action="store_true",
        help="Examine and watch the training of every test, and report what is wrong.",
    )
    group.addoption(
        "--diagnose-fail-on",
        choices=("error", "warning", "never"),
        default="error",
        help="Fail a passing test whose training has findings of at least this severity. Default: error.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and observe every test if asked to."""
    config.addinivalue_line(
        "markers",
        "diagnose(ignore, reason): ignore findings of these rules in this test's training.",
    )
    if config.getoption("--diagnose"):
        _policy_of_project(config)
        config.pluginmanager.register(_EveryTest(config.getoption("--diagnose-fail-on")), "diagnose every test")


@pytest.fixture
def diagnose(request: pytest.FixtureRequest) -> Iterator[Diagnosis]:
    """Observe the training of this test: `report()`, `reports` and `raise_if("error")`."""
    item = request.node
    if _DIAGNOSIS in item.stash:
        yield item.stash[_DIAGNOSIS]
        return
    _begin(item)
    yield item.stash[_DIAGNOSIS]
    _end(item)


@pytest.fixture
def loader_checks(request: pytest.FixtureRequest) -> LoaderChecks:
    """Check datasets and loaders: round trips, the same item twice, workers, order, batches, evaluation data."""
    from .api.checks.loaders import LoaderChecks

    return LoaderChecks(_recorder(request.node))


@pytest.fixture
def gradient_checks(request: pytest.FixtureRequest) -> GradientChecks:
    """Check gradients: of every parameter, of accumulated micro-batches, through long sequences."""
    from .api.checks.gradients import GradientChecks

    return GradientChecks(_recorder(request.node))


def _recorder(item: pytest.Item) -> Callable[[CheckResult], None]:
    """Return what adds the result of a check to the test's report: shown where it fails, and with -rP."""

    def record(result: CheckResult) -> None:
        if result.passed:  # the exception says what the others found
            item.add_report_section("call", "diagnose checks", f"{result}\n")

    return record


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the findings to the test's report. pytest shows those of failing tests, and with -rP those of all."""
    report = yield
    diagnosis = item.stash.get(_DIAGNOSIS, None)
    if diagnosis is not None and (call.when == "call" or (call.when == "setup" and report.failed)):
        diagnosis.close()
        if report.failed and call.excinfo is not None:
            diagnosis.explain(call.excinfo.value)
        _add(diagnosis.report(), report)
    return report


class _EveryTest:
    """The hooks that `--diagnose` adds."""

    def __init__(self, fail_on: str) -> None:
        self._failing = SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on in SEVERITIES else ()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, _Result, _Result]:
        """Remove all hooks, however the test ends."""
        try:
            return (yield)
        finally:
            _end(item)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Start before the fixtures, which may train, too."""
        _end(item)  # a plugin may run it again
        _begin(item)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, _Result, _Result]:
        """Fail a passing test whose training has findings."""
        result = yield
        diagnosis = item.stash[_DIAGNOSIS]
        diagnosis.close()
        bad = [finding for finding in diagnosis.report().findings if finding.severity in self._failing]
        if bad:
            pytest.fail(f"the test passed, but its training has findings: {_names(bad)}", pytrace=False)
        return result

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List findings of tests that passed."""
        listed = {
            report.nodeid: ", ".join(words)
            for report in terminalreporter.getreports("passed")
            if (words := [str(value) for key, value in report.user_properties if key == "diagnose"])
        }
        if listed:
            terminalreporter.section("diagnose: passed with findings (-rP shows them)", "-")
        for test, found in listed.items():
            terminalreporter.write_line(f"{test}: {found}")


def _begin(item: pytest.Item) -> None:
    item.stash[_DIAGNOSIS] = Diagnosis(item.name, _policy_of_project(item.config), _ignored_by_mark(item))


def _end(item: pytest.Item) -> None:
    if _DIAGNOSIS in item.stash:
        item.stash[_DIAGNOSIS].close()
        del item.stash[_DIAGNOSIS]  # and with it the models


def _add(report: Report, to: pytest.TestReport) -> None:
    worth_a_line = [finding for finding in report.findings if finding.severity != "note"]
    to.user_properties += [("diagnose", _names([finding])) for finding in worth_a_line]
    if report.findings or report.faults or report.ignored or report.ignored_in_vain or report.known:
        to.sections.append(("diagnose", str(dataclasses.replace(report, stages=()))))


def _names(findings: Iterable[Finding]) -> str:
    return ", ".join(f"{finding.rule} ({finding.severity})" for finding in findings)


def _policy_of_project(config: pytest.Config) -> Policy:
    if _POLICY not in config.stash:
        from .config import from_pyproject

        try:
            config.stash[_POLICY] = from_pyproject(config.rootpath)
        except InvalidInput as mistake:
            raise pytest.UsageError(str(mistake)) from None
    return config.stash[_POLICY]


def _ignored_by_mark(item: pytest.Item) -> dict[str, str]:
    from .config import check_names

    ignored: dict[str, str] = {}
    for mark in item.iter_markers("diagnose"):
        given = ", ".join([*map(repr, mark.args), *(f"{key}={value!r}" for key, value in mark.kwargs.items())])
        place, usage = f"@pytest.mark.diagnose({given})", 'Write ignore=["RULE"], reason="…".'
        rules, why = mark.kwargs.get("ignore"), mark.kwargs.get("reason", "")
        try:
            if mark.args or set(mark.kwargs) - {"ignore", "reason"} or not isinstance(rules, list | tuple):
                raise InvalidInput(f"{place} takes ignore, a list of rules, and reason, both by name. {usage}")
            check_names(rules, place)
            if not isinstance(why, str) or not why.strip():
                raise InvalidInput(f"{place} gives no reason. {usage}")
        except InvalidInput as mistake:
            raise pytest.fail.Exception(str(mistake), pytrace=False) from None
        ignored |= dict.fromkeys(rules, why)
    return ignored
