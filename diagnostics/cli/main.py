"""The command `diagnose`, also `python -m diagnostics`."""

from __future__ import annotations

import argparse
import difflib
import inspect
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from diagnostics.errors import DiagnosticsError, InvalidInput
from diagnostics.text.join import listed
from diagnostics.text.streams import lenient_output

from .installation import DISTRIBUTION, damage
from .rendering import add_format, add_rendering, format_of, write, write_report

if TYPE_CHECKING:
    from diagnostics.report.report import Report

CLEAN, FOUND, USAGE = 0, 1, 2
TEXT_OR_JSON = ("text", "json")
COMPLETION = "--print-completion"
RUN = "run a script as python would, and report what is wrong with its training"
ATTACH = "ask a running program for a report"
BATCH = "show the first batch that a script trains on, without training"
NETWORK = "check that the ranks of a job can communicate"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `diagnose`.

    Returns:
        0 without findings of severity warning or above, 1 with some, 2 for invalid arguments; for `diagnose run`,
        see `diagnostics.cli.run`.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if (why := damage()) is not None:
        print(f"diagnose: {why}", file=sys.stderr)
    if given[:1] not in (["run"], ["batch"]):
        with lenient_output():
            return _without_a_script(given)
    from .run import split

    given, of_the_script = split(given)
    options = _parser(given[0]).parse_args(given)
    options.arguments = of_the_script
    try:
        code: int = options.command(options)
    except DiagnosticsError as error:
        print(f"diagnose: {error}", file=sys.stderr)
        return USAGE
    return code


def _without_a_script(given: list[str]) -> int:
    """Run a command that does not share its process and standard output with a script."""
    try:
        try:
            options = _parser(next(iter(given), "")).parse_args(given)
            code: int = options.command(options)
        finally:
            sys.stdout.flush()
    except DiagnosticsError as error:
        print(f"diagnose: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        print("diagnose: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        if error.filename is not None:  # not a stream's error
            raise
        if isinstance(error, BrokenPipeError):  # the reader (`| head`) has read enough
            return CLEAN
        print(f"diagnose: cannot write to standard output: {error.strerror}.", file=sys.stderr)
        return USAGE
    return code


def _parser(chosen: str) -> argparse.ArgumentParser:
    """Return the parser, with the options of the chosen command only: those of all take long to import."""
    parser = argparse.ArgumentParser(
        prog="diagnose",
        description="Finds bugs in a training run: what is wrong, where, the evidence, and how to fix it.",
        epilog="Exit codes: 0 no findings of severity warning or above, 1 findings, 2 invalid arguments.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    parser.add_argument(
        COMPLETION,
        action=_Completion,
        choices=("bash", "zsh", "tcsh"),
        metavar="SHELL",
        help="print a completion script for bash, zsh or tcsh",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    every = chosen.partition("=")[0] == COMPLETION
    if chosen == "run" or every:
        from .run import add_to

        add_to(commands, RUN)
    else:
        commands.add_parser("run", help=RUN)

    if chosen == "attach":
        from .attach import add_to as add_attach

        add_attach(commands, ATTACH)
    else:
        commands.add_parser("attach", help=ATTACH)

    if chosen == "batch":
        from .run import add_batch_to

        add_batch_to(commands, BATCH)
    else:
        commands.add_parser("batch", help=BATCH)

    explain = commands.add_parser("explain", help="find the cause of a crash from its traceback")
    explain.add_argument("file", metavar="FILE|-", help="a file with a traceback, or - for standard input")
    add_rendering(explain)
    explain.set_defaults(command=_explain)

    notebook = commands.add_parser("notebook", help="find what would change if a notebook were run from the top")
    notebook.add_argument("file", metavar="FILE", help="a notebook (.ipynb), which is only read, not run")
    add_rendering(notebook)
    notebook.set_defaults(command=_notebook)

    lint = commands.add_parser("lint", help="find bugs in the source of scripts, without running them")
    lint.add_argument(
        "paths", metavar="FILE", nargs="+", help="scripts (.py), notebooks (.ipynb), or folders of both"
    )
    add_rendering(lint)
    lint.set_defaults(command=_lint)

    rules = commands.add_parser("rules", help="list the rules, or show one rule's page")
    rules.add_argument("name", metavar="NAME", nargs="?", help="name of a rule, as shown in reports")
    rules.add_argument("--format", choices=TEXT_OR_JSON, default="text")
    rules.set_defaults(command=_rules)

    gpu = commands.add_parser("gpu", help="list the processes on each NVIDIA GPU")
    add_format(gpu, TEXT_OR_JSON)
    gpu.set_defaults(command=_gpu)

    if chosen == "network" or every:
        from .network import add_to as add_network

        add_network(commands, NETWORK)
    else:
        commands.add_parser("network", help=NETWORK)

    from .saved import add_diff, add_join, add_show

    add_join(commands).set_defaults(command=_join)
    add_diff(commands)
    add_show(commands)
    return parser


class _Version(argparse.Action):
    """Looks up the version only on request, because reading package metadata is slow."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = f"{DISTRIBUTION} {version(DISTRIBUTION)}"
        except PackageNotFoundError:  # a clone on the path
            found = f"{DISTRIBUTION}, not installed"
        print(f"{parser.prog} ({found})")
        parser.exit()


class _Completion(argparse.Action):
    """Prints what a shell needs to complete commands and options."""

    def __call__(self, parser: argparse.ArgumentParser, _: Any, shell: Any, *__: Any) -> None:
        try:
            import shtab
        except ImportError:
            raise InvalidInput(
                f"{COMPLETION} needs the package shtab: python -m pip install '{DISTRIBUTION}[completion]'"
            ) from None
        print(shtab.complete(parser, shell=shell))
        parser.exit()


def _explain(options: argparse.Namespace) -> int:
    from diagnostics.api.explain import explain

    from .log_file import read_log

    log = read_log(options.file)
    if log.note is not None:
        print(f"diagnose: {log.note}", file=sys.stderr)
    return _shown(explain(log.text), options)


def _notebook(options: argparse.Namespace) -> int:
    from diagnostics.api.notebook import check_notebook

    return _shown(check_notebook(options.file), options)


def _lint(options: argparse.Namespace) -> int:
    from diagnostics.api.lint import lint
    from diagnostics.report.terminal import closing

    linted = lint(options.paths)
    for problem in linted.unread:
        print(f"diagnose: {problem}", file=sys.stderr)
    if options.output is None and format_of(options) == "text":
        from rich.console import Console

        print(*linted.lines, sep="\n", end="\n" if linted.lines else "")
        Console(highlight=False).print(*closing(linted.report), sep="\n")
    else:
        write_report(options, linted.report)
    return USAGE if linted.unread else _code(linted.report)


def _join(options: argparse.Namespace) -> int:
    from diagnostics.report.join import join_reports

    return _shown(join_reports(options.folder), options)


def _shown(report: Report, options: argparse.Namespace) -> int:
    """Write a report in the requested format, and return the exit code."""
    write_report(options, report)
    return _code(report)


def _code(report: Report) -> int:
    return FOUND if any(finding.severity != "note" for finding in report.findings) else CLEAN


def _rules(options: argparse.Namespace) -> int:
    from rich.console import Console

    from diagnostics.rules.registry import all_rules

    from .rule_list import rule_list

    console = Console(highlight=False)
    rules = {rule.name: rule for rule in all_rules()}
    if options.name is None:
        if options.format == "json":
            listing = [
                {"rule": rule.name, "stage": rule.stage, "severity": rule.severity, "summary": rule.summary()}
                for rule in rules.values()
            ]
            print(json.dumps(listing, indent=2))
            return CLEAN
        for line in rule_list(list(rules.values()), console.width):
            console.print(line, soft_wrap=True)
        return CLEAN
    if options.name not in rules:
        near = difflib.get_close_matches(options.name, rules, n=3)
        hint = f"Did you mean {listed(near, 'or')}?" if near else "`diagnose rules` lists all rules."
        raise InvalidInput(f"there is no rule {options.name!r}. {hint}")
    rule = rules[options.name]
    page = inspect.getdoc(rule) or ""
    if options.format == "json":
        print(
            json.dumps({"rule": rule.name, "stage": rule.stage, "severity": rule.severity, "page": page}, indent=2)
        )
    else:
        from rich.markdown import Markdown

        console.print(
            Markdown(f"# {rule.name}\n\n*{rule.severity}, {rule.stage}*\n\n{page}"), width=min(100, console.width)
        )
    return CLEAN


def _gpu(options: argparse.Namespace) -> int:
    import io

    from rich.console import Console, Group

    from diagnostics.api.gpu import look_at_cards, tables
    from diagnostics.collectors.system.nvml import NoCards
    from diagnostics.report.report import Report

    try:
        cards, report = look_at_cards()
    except NoCards as reason:
        if not reason.looked:
            raise InvalidInput(str(reason)) from None
        cards, report = (), Report(str(reason))
    shown = Group(*tables(cards), report) if cards else report.title

    def rendered(kind: str) -> str:
        if kind == "json":
            written = {**json.loads(report.to_json()), "cards": [asdict(card) for card in cards]}
            return json.dumps(written, indent=2)
        if not cards:
            return report.title
        Console(file=(text := io.StringIO()), highlight=False).print(shown)
        return text.getvalue().rstrip()

    write(options, rendered, shown, TEXT_OR_JSON)
    return _code(report)
