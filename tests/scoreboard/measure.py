"""Asks every tool about every exhibit, broken and repaired.

$ nox -s scoreboard                                # all exhibits, all tools; prints what was said
$ nox -s scoreboard -- --record                    # and keeps it in measured.json, for the book
$ nox -s scoreboard -- --only 11,12 --record       # some exhibits; the others stay as they are recorded
$ nox -s scoreboard -- --cost 5 --quiet --record   # what each tool costs, in five pairs; nothing else runs

`tools/` shows how each tool is called, `tools.toml` what it is not asked about and which words name a cause.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from bugs.zoo.keeper.catalogue import Exhibit, load_catalogue
from tests.scoreboard import cost
from tests.scoreboard.answers import Answers
from tests.scoreboard.record import OURS, PLAIN, RECORD, VERSIONS, Record, Tool, load_tools
from tests.scoreboard.surroundings import ROOT, environment
from tests.scoreboard.tools import diagnose_run


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and record; return 0, or 1 if an exhibit could not be asked about."""
    parser = argparse.ArgumentParser(
        prog="nox -s scoreboard --", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=_names, metavar="ID,ID", help="these exhibits")
    parser.add_argument("--tools", type=_names, metavar="NAME,NAME", help="these tools")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="exhibits at a time")
    parser.add_argument("--cost", type=int, default=0, metavar="PAIRS", help="measure the cost, and nothing else")
    parser.add_argument(
        "--quiet", action="store_true", help="nothing else runs on the machine: the record says so"
    )
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name}")
    options = parser.parse_args(arguments)
    known, exhibits = load_tools(), load_catalogue(ROOT)
    tools = {name: known[name] for name in options.tools or known}
    record = Record.read()
    record.note_versions(known)
    if options.cost:
        for id in options.only or cost.EXHIBITS:
            measured = cost.measure(exhibits[id], tools, options.cost)
            record.keep_cost(id, measured, quiet=options.quiet)
            print(id, json.dumps(measured), flush=True)
            _write(record, options.record)
        return 0
    failed = False
    with ThreadPoolExecutor(options.jobs) as pool:
        asked = [pool.submit(ask_both, exhibits[id], tools) for id in options.only or exhibits]
        for done in as_completed(asked):
            if (error := done.exception()) is not None:
                failed = True
                print(error, file=sys.stderr)
                continue
            for id, version, name, said in done.result():
                record.keep(name, id, version, said)
                kinds = [one["kind"] for one in said["answers"] if one["severity"] != "note"]
                print(id, version, name, kinds or "nothing", said["ended"], sep="  ", flush=True)
            _write(record, options.record)
    return int(failed)


def _write(record: Record, wanted: bool) -> None:
    if wanted:
        record.write()


def ask_both(exhibit: Exhibit, tools: Mapping[str, Tool]) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Return what each tool says of an exhibit: its id, the version, the tool's name, and what it said."""
    return [
        (exhibit.id, version, name, said)
        for version in VERSIONS
        for name, said in ask(exhibit, version, tools).items()
    ]


def ask(exhibit: Exhibit, version: str, tools: Mapping[str, Tool]) -> dict[str, dict[str, Any]]:
    """Return, by tool, what it says of one version of an exhibit's script, and how the script ended."""
    script = exhibit.script if version == "broken" else exhibit.solution
    asked = [name for name, tool in tools.items() if name != OURS and tool.is_asked(exhibit)]
    with tempfile.TemporaryDirectory(prefix="bug-zoo-") as name:
        folder = Path(name)
        found = _others(script, folder, [PLAIN, *asked]) if asked else {}
        if OURS in tools:
            answers = Answers()
            ended = diagnose_run.run(script, folder, answers, environment())
            found[OURS] = {"answers": answers.to_list(), "ended": ended}
    return found


def _others(script: Path, folder: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-m", "tests.scoreboard.ask", str(script), str(folder), *names]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{script} could not be prepared:\n{done.stderr[-2000:]}")
    found = {}
    for name in names:
        said = json.loads((folder / f"{name}.json").read_text("utf-8"))
        found[name] = {"answers": said["answers"], "ended": said["ended"]}
    return found


def _names(text: str) -> list[str]:
    return text.split(",")


if __name__ == "__main__":
    sys.exit(main())
