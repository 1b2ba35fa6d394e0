"""`diagnose run`: examines, watches and explains an unmodified script."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from diagnostics.api.stop_on import STOP_ON
from diagnostics.config import FAIL_ON, from_option, of_project
from diagnostics.errors import InvalidInput
from diagnostics.report.formats import FORMATS
from diagnostics.report.saved import read_baseline
from diagnostics.run.first_batch import FirstBatch, NoBatch
from diagnostics.run.library_modules import is_shadowed, under_alias
from diagnostics.run.options import RunOptions
from diagnostics.run.output import STANDARD_OUTPUT
from diagnostics.run.ranks.delivery import RankDelivery
from diagnostics.run.ranks.exchange import Exchange, Rank, launch_time, rank_of_this_process
from diagnostics.run.ranks.launched import LaunchedRank
from diagnostics.run.ranks.spawned import SpawnedRanks
from diagnostics.run.ranks.stall import LIMIT_S
from diagnostics.run.script import Script, working_folder
from diagnostics.run.session import RunSession

from .rendering import format_of, seconds

DESCRIPTION = """\
Runs an unmodified script as `python` would. When the script ends, reports what is wrong with its training:
findings from before training, from the run itself, and from the exception that ended it. The script's output and
results stay the same; the report goes to standard error or to a file.
"""
EPILOG = """\
Options go before the script; arguments after it are passed to the script. Exit code: the script's own if it is
not 0; otherwise 1 if there are findings of the --fail-on severity or above; otherwise 0.

Under a launcher that sets RANK and WORLD_SIZE: torchrun --nproc-per-node 2 -m diagnostics run train.py. Every
rank then exits with the script's exit code. Rank 0 prints the report; a finding that only other ranks have is
printed as one line. With --output report.json, rank 1 writes report.rank1.json, and so on; a job that torchrun
restarts writes report.restart1.json, and so on. Ranks that the script starts itself with
torch.multiprocessing.spawn get one joint report.
"""

SCRIPTED = ("run", "batch")
"""The commands that run a script, whose arguments follow it."""
BATCH_DESCRIPTION = """\
Runs a script as `python` would up to its first training batch, and shows that batch: images with their labels,
decoded tokens, plots of series and tables. No training step is taken.
"""
BATCH_EPILOG = """\
The process then ends at once: the script's `finally` blocks and exit handlers do not run, so no untrained weights
are saved. Files that the script writes before its first batch are kept, and a tracker may show the run as crashed.
Options go before the script; arguments after it are passed to the script. Exit code: 0 if a batch was shown;
otherwise the script's own if it is not 0; otherwise 1.
"""


def add_to(commands: Any, summary: str) -> None:
    """Add `run` to the subparsers of `diagnose`."""
    run = commands.add_parser(
        "run",
        help=summary,
        usage="diagnose run [options] SCRIPT | -m MODULE [arguments]",
        description=DESCRIPTION,
        epilog=EPILOG,
        allow_abbrev=False,  # `split` recognises only whole names
    )
    run.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as `python -m` would")
    run.add_argument("script", metavar="SCRIPT", nargs="?", help="the script")
    run.add_argument(
        "--format", choices=FORMATS, help="report format (default: from the name of FILE, otherwise text)"
    )
    run.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="write the report to FILE (- is standard output); it is also written during the run, so it survives "
        "if the process is killed (without FILE, a killed process leaves no report)",
    )
    run.add_argument(
        "--no-redact", action="store_true", help="do not redact folders, host names, secrets and data in Markdown"
    )
    run.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        help="lowest severity that makes the run fail (default: fail-on of pyproject.toml, or warning)",
    )
    run.add_argument(
        "--baseline",
        metavar="FILE",
        type=Path,
        help="a JSON report of an earlier run, whose findings are only counted and do not make the run fail",
    )
    run.add_argument("--ignore", metavar="RULE[,RULE]", default="", help="rules to ignore")
    run.add_argument(
        "--stop-on",
        choices=STOP_ON,
        help="stop the script (exit code 1) when a finding of this severity or worse appears; at NaN or infinity, "
        "before the weights change, and with the batch saved next to FILE",
    )
    run.add_argument(
        "--alert",
        action="store_true",
        help="send each error and warning, as soon as it appears, to the active Weights & Biases or MLflow run "
        "that the script started",
    )
    run.add_argument("--max-steps", metavar="N", type=_whole, help="stop the script after N optimizer steps")
    run.add_argument("--time-limit", metavar="S", type=seconds, help="stop the script after S seconds")
    run.add_argument(
        "--replay-on-cpu",
        action="store_true",
        help="if a GPU operation fails, run the script again on the CPU to find the failing line",
    )
    run.add_argument(
        "--second-look",
        metavar="off|S",
        type=_off_or_seconds,
        help="seconds to examine the models after the script has ended (default: 10%% of the run, 1 to 30, at "
        "least 10 if it did not learn); Ctrl-C prints the report at once",
    )
    run.add_argument(
        "--stall-timeout",
        metavar="off|S",
        type=_off_or_seconds,
        help="with several ranks: seconds without progress after which to report where each rank is (default: "
        f"{LIMIT_S:g})",
    )
    run.add_argument("--no-batch", action="store_true", help="show no rows of the first batches in an HTML report")
    run.add_argument("--first-batches", type=Path, help=argparse.SUPPRESS)  # passed from a first run to its second
    run.add_argument("--quiet", action="store_true", help="print no report unless the run fails")
    run.add_argument(
        "--verbose", action="store_true", help="show every stage and every rule that could not be checked"
    )
    run.set_defaults(command=run_script)


def add_batch_to(commands: Any, summary: str) -> None:
    """Add `batch` to the subparsers of `diagnose`."""
    batch = commands.add_parser(
        "batch",
        help=summary,
        usage="diagnose batch [options] SCRIPT | -m MODULE [arguments]",
        description=BATCH_DESCRIPTION,
        epilog=BATCH_EPILOG,
        allow_abbrev=False,
    )
    batch.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as `python -m` would")
    batch.add_argument("script", metavar="SCRIPT", nargs="?", help="the script")
    batch.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="write the batch to FILE, which must not exist: .html, .txt, or .png for its images",
    )
    batch.set_defaults(command=show_first_batch)


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate `diagnose`'s arguments from those of the script, which may look the same."""
    given = list(arguments)
    if not given or given[0] not in SCRIPTED:
        return given, []
    takes_a_value = {"--format", "--output", "--fail-on", "--ignore", "--baseline", "--stop-on"}
    takes_a_value |= {"--max-steps", "--time-limit", "--second-look", "--first-batches", "--stall-timeout"}
    at = 1
    while at < len(given):
        word = given[at]
        if word == "-m" or (word.startswith("-m") and not word.startswith("--")):
            end = at + 2 if word == "-m" else at + 1
            return given[:end], given[end:]
        if not word.startswith("-") or word == "-":
            return given[: at + 1], given[at + 1 :]
        at += 2 if word in takes_a_value else 1
    return given, []


def run_script(options: argparse.Namespace) -> int:
    """Run the script; see `RunSession.make`."""
    script = _script(options)
    if is_shadowed(script.folder):
        return int(under_alias("cli.run").run_script(options))
    rank = rank_of_this_process()
    policy, mistakes = of_project()
    baseline = {} if options.baseline is None else read_baseline(options.baseline)
    shown = policy.show_batch and not options.no_batch
    policy = policy.ignoring(from_option(options.ignore))
    policy = replace(policy, script=script.file, baseline=baseline, show_batch=shown)
    session_options = RunOptions(
        kind=_format(options),
        output=_output(options.output, rank),
        fail_on=options.fail_on or policy.of_file(script.file).fail_on or "warning",
        policy=policy,
        settings=mistakes,
        max_steps=options.max_steps,
        time_limit=options.time_limit,
        replay_on_cpu=options.replay_on_cpu,
        first_batches=options.first_batches,
        quiet=options.quiet,
        second_look=options.second_look,
        verbose=options.verbose,
        redact=not options.no_redact,
        stop_on=options.stop_on,
        batch_file=_batch_file(options.output, rank),
        alerts=options.alert,
    )
    if rank is None:
        spawned = SpawnedRanks(script, session_options, options.stall_timeout)
        return RunSession(script, session_options, extras=[spawned]).make()
    exchange = Exchange(rank)
    delivery = RankDelivery(session_options, rank, exchange)
    launched = LaunchedRank(rank, exchange, delivery, options.stall_timeout)
    return RunSession(script, session_options, delivery, [launched]).make()


def show_first_batch(options: argparse.Namespace) -> int:
    """Run the script up to its first training batch, and show that."""
    script = _script(options)
    if is_shadowed(script.folder):
        return int(under_alias("cli.run").show_first_batch(options))
    if rank_of_this_process() is not None:
        raise InvalidInput("batch shows the batch of one process. Start the script without a launcher.")
    output = None if options.output is None else _checked(options.output)
    if output is not None and (output.exists() or output.suffix not in (".html", ".png", ".txt")):
        why = "exists" if output.exists() else "must end in .html, .png or .txt"
        raise InvalidInput(f"--output was given {options.output}, which {why}.")
    policy, mistakes = of_project()
    quiet = RunOptions(
        kind="text",
        output=None,
        fail_on="never",
        policy=replace(policy, show_batch=True),  # as the command says
        quiet=True,
        second_look=0.0,
        settings=mistakes,
    )
    delivery = NoBatch(quiet)
    return RunSession(script, quiet, delivery, [FirstBatch(output, delivery)]).make()


def _script(options: argparse.Namespace) -> Script:
    if (options.script is None) == (options.module is None):
        raise InvalidInput("nothing to run. Pass a script, or a module after -m: diagnose run train.py")
    return Script(options.module or options.script, options.arguments, module=options.module is not None)


def _format(options: argparse.Namespace) -> str:
    if options.format == "html" and options.output is None:
        raise InvalidInput("an HTML report needs a file: --output report.html")
    return format_of(options)


def _output(given: Path | None, rank: Rank | None) -> Path | None:
    if given is None or given == STANDARD_OUTPUT:
        return given
    return _checked(given if rank is None else rank.file(given, launch_time()))


def _batch_file(output: Path | None, rank: Rank | None) -> Path:
    """Return the file for a batch that stops the run, without its ending; beside the report, if that is a file."""
    given = Path("failed_batch")
    if output is not None and output != STANDARD_OUTPUT:
        given = output.with_suffix(".batch")
    return Path(working_folder(), given if rank is None else rank.file(given, launch_time()))


def _checked(output: Path) -> Path:
    """Reject an unwritable file before the script starts, not after it has run for hours."""
    if output.is_dir():
        raise InvalidInput(f"--output was given {output}, which is a folder. Pass a file name.")
    target = Path(working_folder(), output)  # the script may change the working directory
    if not target.parent.is_dir():
        raise InvalidInput(f"--output was given {output}, but there is no folder {target.parent}.")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InvalidInput(f"--output was given {output}, which is not writable.")
    return target


def _whole(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of steps, 1 or more")
    return int(text)


def _off_or_seconds(text: str) -> float:
    return 0.0 if text == "off" else seconds(text)
