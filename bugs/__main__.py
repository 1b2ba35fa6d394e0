"""The zoo's command, `python -m bugs`: for keepers (list, run, verify, export) and for learners."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from bugs.zoo.keeper.catalogue import CatalogueError, Exhibit, UnknownExhibit, find, survey
from bugs.zoo.keeper.strict_json import to_json
from bugs.zoo.learner import arguments as learners

ROOT = Path(__file__).resolve().parents[1]
ENDING_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")  # Ctrl-C, kill, a closed terminal, Ctrl-\\
INTERRUPTED = 130  # reported by a shell for a program that was ended with Ctrl-C
USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 0 as declared, 1 not, 2 not run, 130 interrupted."""
    options = _parser().parse_args(arguments)
    for name in ENDING_SIGNALS:
        number = getattr(signal, name, None)  # Windows lacks two of them
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a shell's `&`
            signal.signal(number, _leave)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # an encoding's gaps must not fail a check
    try:
        code = int(options.command(options))
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _complain("interrupted; nothing is left running", INTERRUPTED)
    except (CatalogueError, UnknownExhibit, learners.Refused) as error:
        return _complain(str(error), USAGE)
    except ModuleNotFoundError as error:
        if error.name not in ("psutil", "rich"):
            raise
        advice = "run `nox -s env` once and use `nox -s bug-NN`, or pip install -e .[zoo]"
        return _complain(f"this Python ({sys.executable}) lacks {error.name!r}; {advice}", 1)
    except BrokenPipeError:  # `| head`
        sys.stdout = None  # so that nothing is flushed to a closed pipe at exit
        return 1
    except (OSError, UnicodeError, SyntaxError) as error:  # a full disk, or a file that does not match its name
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError:
            sys.stdout = None
        notes = [note for note in getattr(error, "__notes__", []) if note]
        return _complain(" ".join([f"{options.name} failed: {_told(error, options.root)}.", *notes]), USAGE)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bugs", description="Real training bugs: run them, fix them, and check your fix."
    )
    parser.add_argument("--root", type=_zoo, default=ROOT, help="folder of another zoo (default: this one)")
    commands = parser.add_subparsers(title="commands", required=True, dest="name", metavar="COMMAND")

    command = commands.add_parser("list", help="list all exhibits")
    command.set_defaults(command=_list)
    _takes_json(command)

    command = commands.add_parser(
        "run", help="run an exhibit's broken script, and check that it fails as declared"
    )
    command.set_defaults(command=_run)
    command.add_argument("id", metavar="ID", help="04, bug-04 or 04_wrong_label_count")
    command.add_argument("--solution", action="store_true", help="run the fixed script instead")
    command.add_argument(
        "--mine",
        action="store_true",
        help="run your version instead, as it is; ID may be chapter-05 or mystery-04",
    )
    command.add_argument("--diagnose", action="store_true", help="with --mine: run it under diagnose run")
    command.add_argument("--seed", type=_whole, metavar="N", help="random seed of the script (default: 0)")
    _takes_json(command)

    command = commands.add_parser(
        "verify", help="check that broken scripts fail as declared and that solutions train"
    )
    command.set_defaults(command=_verify)
    command.add_argument("ids", nargs="*", metavar="ID", help="exhibits to check (default: all)")
    command.add_argument(
        "--seeds", type=_above_zero, default=1, metavar="N", help="run with seeds 0 to N-1 (default: 1)"
    )
    command.add_argument(
        "--jobs", type=_above_zero, default=2, metavar="N", help="number of scripts to run at a time (default: 2)"
    )
    _takes_json(command)

    command = commands.add_parser(
        "export", help="print the catalogue, or the results of a class, as JSON or CSV, for courses and slides"
    )
    command.set_defaults(command=_export)
    command.add_argument(
        "--results",
        nargs="+",
        type=_folder,
        metavar="FOLDER",
        help="print what learners have done: their attempts folders, or a folder with one for each learner",
    )
    command.add_argument("--format", choices=("json", "csv"), default="json", help="default: json")

    learners.add_to(commands, _takes_json)
    return parser


def _list(options: argparse.Namespace) -> int:
    exhibits, broken = survey(options.root)
    if options.json:
        listed = [_to_dict(exhibit) for exhibit in exhibits.values()]
        print(to_json({"version": 1, "exhibits": listed, "broken": list(map(str, broken))}))
    else:
        from bugs.zoo.keeper.display import show_list

        show_list(exhibits.values(), broken)
    return 1 if broken else 0


def _run(options: argparse.Namespace) -> int:
    if options.mine:
        return learners.run_mine(options)
    exhibits, exhibit = _find(options.root, options.id)
    from bugs.zoo.keeper.runner import run

    return run(
        exhibit, list(exhibits.values()), solution=options.solution, seed=options.seed, as_json=options.json
    )


def _verify(options: argparse.Namespace) -> int:
    exhibits, broken = survey(options.root)
    if options.ids:
        chosen = list(dict.fromkeys(_find(options.root, id)[1].id for id in options.ids))
    else:
        chosen = list(exhibits)
        if broken:
            raise broken[0]
    from bugs.zoo.keeper.runner import run_verification

    return run_verification(
        [exhibits[id] for id in chosen], seeds=options.seeds, jobs=options.jobs, as_json=options.json
    )


def _export(options: argparse.Namespace) -> int:
    from bugs.zoo.keeper.export import CATALOGUE, RESULTS, as_csv, as_json, catalogue

    exhibits, broken = survey(options.root)
    if broken:
        raise broken[0]
    name, columns, rows = "exhibits", CATALOGUE, catalogue(exhibits.values())
    if options.results:
        from bugs.zoo.learner.results import results

        name, columns, rows = "results", RESULTS, results(options.results, exhibits)
    if options.format == "json":
        print(as_json(name, rows))
    else:
        print(as_csv(columns, rows), end="")
    return 0


def _find(root: Path, name: str) -> tuple[dict[str, Exhibit], Exhibit]:
    exhibits, broken = survey(root)
    try:
        return exhibits, find(exhibits, name)
    except UnknownExhibit:
        # It may exist but have a broken manifest: then report that.
        digits = "".join(filter(str.isdigit, name))[:2].zfill(2)
        for error in broken:
            if error.folder.startswith(digits):
                raise error from None
        raise


def _to_dict(exhibit: Exhibit) -> dict[str, object]:
    return {
        "id": exhibit.id,
        "folder": exhibit.folder,
        "title": exhibit.title,
        "framework": exhibit.framework,
        "stage": exhibit.stage,
        "symptom": exhibit.symptom,
        "rules": list(exhibit.rules),
        "budget_s": exhibit.budget_s,
        "budget_mb": exhibit.budget_mb,
        "page": exhibit.page,
    }


def _takes_json(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--json",
        action="store_true",
        help='print only one JSON object; NaN and infinity become "nan", "inf" and "-inf"',
    )


def _zoo(text: str) -> Path:
    root = Path(text)
    if not os.path.isdir(root / "bugs"):  # False as well if access is denied
        missing = "it has no folder bugs/" if os.path.isdir(root) else "there is no such folder"
        raise argparse.ArgumentTypeError(f"{text!r} is not a zoo: {missing}")
    return root


def _folder(text: str) -> Path:
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"there is no folder {text!r}")
    return Path(text)


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number, 0 or above, got {text!r}")
    return int(text)


def _above_zero(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {text!r}")
    return int(text)


def _told(error: Exception, root: Path) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    if error.filename is None:
        return error.strerror
    path = Path(os.fsdecode(error.filename))
    with contextlib.suppress(ValueError):
        path = path.relative_to(root.resolve())
    return f"{path.as_posix()}: {error.strerror}"


def _complain(line: str, code: int) -> int:
    with contextlib.suppress(OSError):
        print(f"bugs: {line}", file=sys.stderr)
    return code


def _leave(number: int, _: object) -> NoReturn:
    """Unwind to end every child and remove its folder; a second signal must not interrupt this."""
    for name in ENDING_SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
