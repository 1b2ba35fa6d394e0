"""Installs the library's wheel beside the lowest and the newest frameworks, and tries `diagnose` there.

$ nox -s matrix                                  # every row whose packages are not too large
$ nox -s matrix -- keras-lowest torch-lowest     # these rows, large or not
$ nox -s matrix -- --record                      # and keeps what came of them, for the library's README

Each row of `rows.toml` gets an environment of its own outside the repository, which is deleted afterwards.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.recall.programs import Program, programs  # noqa: E402

RECORD, README = Path(__file__).with_name("measured.json"), ROOT / "diagnostics" / "README.md"
SHOWN = ("numpy", "torch", "transformers", "tensorflow", "keras")
PASSED = "passed"
LIMIT_S = 600  # for one command; the slowest takes a minute on two cores
PLAIN = "import numpy as np\nprint(np.arange(3).sum())\n"
TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 12, in <module>
    loss = nn.functional.cross_entropy(model(x), y)
IndexError: Target 2 is out of bounds.
"""
_TABLE = re.compile(r"(<!-- matrix: [^>]*-->\n).*?(<!-- end of matrix -->)", re.DOTALL)


class MissingInterpreter(Exception):
    """There is no such Python on this machine."""


@dataclass(frozen=True)
class Row:
    """One environment: a Python, what is installed beside the wheel, and which programs are run.

    Attributes:
        large: why it is only run when it is named; empty if it always is.
    """

    name: str
    python: str
    requires: tuple[str, ...]
    programs: tuple[str, ...]
    large: str = ""


def rows() -> dict[str, Row]:
    """Read `rows.toml`."""
    told = tomllib.loads(RECORD.with_name("rows.toml").read_text("utf-8"))
    kinds = told["programs"]
    return {
        name: Row(name, one["python"], tuple(one["requires"]), tuple(kinds[one["programs"]]), one.get("large", ""))
        for name, one in told["rows"].items()
    }


def table(record: dict[str, Any]) -> str:
    """Return the rows as a Markdown table: what was installed and what came of it."""
    lines = [f"| Python | {' | '.join(SHOWN)} | result |", f"|{'---|' * (len(SHOWN) + 2)}"]
    for row in rows().values():
        told = record.get(row.name)
        if told is None:
            versions, result = _required(row), "not run yet"
        else:
            versions, result = told["versions"], f"{told['result']} ({told['date']})"
        shown = " | ".join(versions.get(name, "") for name in SHOWN)
        lines.append(f"| {versions['python']} | {shown} | {result} |")
    return "\n".join(lines)


def with_table(readme: str, record: dict[str, Any]) -> str:
    """Return the library's README with the table between its two marks.

    Raises:
        ValueError: the marks are not there.
    """
    written, count = _TABLE.subn(lambda marks: f"{marks[1]}\n{table(record)}\n\n{marks[2]}", readme)
    if count != 1:
        raise ValueError(f"{README} needs one pair of marks, {_TABLE.pattern}; it has {count}")
    return written


def _required(row: Row) -> dict[str, str]:
    """Return the versions that a row asks for, without those that it leaves open."""
    told = (re.fullmatch(r"([\w-]+)[~=]=(.+?)(?:\.\*)?", one) for one in row.requires)
    return {"python": row.python} | {one[1]: one[2] for one in told if one is not None}


def measure(row: Row, wheel: Path, folder: Path) -> dict[str, Any]:
    """Install a row in the folder and run its commands there; return versions and result.

    Raises:
        MissingInterpreter: there is no such Python.
    """
    made = _run([sys.executable, "-m", "virtualenv", "-q", "-p", row.python, str(folder / "env")])
    if made.returncode:
        raise MissingInterpreter(f"no Python {row.python} here")
    python = str(folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python")
    installed = _run([python, "-m", "pip", "install", "-q", "--no-compile", str(wheel), *row.requires])
    if installed.returncode:
        return {"versions": {"python": row.python}, "result": f"not installed: {installed.stderr.strip()[-300:]}"}
    packages = json.loads(_run([python, "-m", "pip", "list", "--format", "json"]).stdout)
    known = {one["name"]: one["version"] for one in packages}
    known["python"] = _run([python, "-c", "import platform; print(platform.python_version())"]).stdout.strip()
    wrong = list(_faults(row, python, folder))
    versions = {name: known[name] for name in ("python", *SHOWN) if name in known}
    return {"versions": versions, "result": "; ".join(wrong) or PASSED}


def _faults(row: Row, python: str, folder: Path) -> Iterator[str]:
    """Run the row's commands; yield what is not as it must be."""
    diagnose = [str(Path(python).with_name("diagnose"))]
    listed = _run([*diagnose, "rules", "--format", "json"])
    if listed.returncode or len(json.loads(listed.stdout)) < 100:
        yield f"diagnose rules: {_last(listed)}"
    (folder / "log.txt").write_text(TRACEBACK)
    explained = _run([*diagnose, "explain", "log.txt", "--format", "json"], folder)
    if explained.returncode != 1 or "labels-out-of-range" not in explained.stdout:
        yield f"diagnose explain: {_last(explained)}"
    (folder / "plain.py").write_text(PLAIN)
    plain = _run([*diagnose, "run", "plain.py"], folder)
    if plain.returncode or plain.stdout != "3\n" or "Nothing could be judged." not in plain.stderr:
        yield f"diagnose run: {_last(plain)}"
    known = {program.path.stem: program for program in programs()}
    for name in row.programs:
        yield from _faults_of(known[name], diagnose, folder)


def _faults_of(program: Program, diagnose: Sequence[str], folder: Path) -> Iterator[str]:
    """Run a program of the recall; yield whether it is not named, or alarmed, or met an error of the library."""
    file = folder / "report.json"
    file.unlink(missing_ok=True)
    done = _run([*diagnose, "run", "--output", str(file), str(program.path)], folder)
    if not file.is_file():
        yield f"{program.name}: {_last(done)}"
        return
    report = json.loads(file.read_text("utf-8"))
    if report["exit_code"]:
        yield f"{program.name}: exit code {report['exit_code']}: {_last(done)}"
    if report["faults"]:
        yield f"{program.name}: an error of the library: {report['faults'][0].strip().splitlines()[-1]}"
    found = {finding["rule"] for finding in report["findings"] if finding["severity"] != "note"}
    if program.is_healthy and found:
        yield f"{program.name}, which is healthy: {', '.join(sorted(found))}"
    if not program.is_healthy and not found & set(program.rules):
        yield f"{program.name}: {', '.join(sorted(found)) or 'nothing'} instead of {program.rules[0]}"


def _last(done: subprocess.CompletedProcess[str]) -> str:
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return f"exit code {done.returncode}, {said[-1] if said else 'nothing printed'}"


def _run(command: Sequence[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command without what this environment tells Python."""
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    surroundings |= {"TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
    return subprocess.run(
        command, cwd=folder, env=surroundings, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return 1 if a row did not pass."""
    known = rows()
    parser = argparse.ArgumentParser(
        prog="nox -s matrix --", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", choices=[*known, []], metavar="ROW", help=f"of {', '.join(known)}")
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name} and the library's README")
    options = parser.parse_args(arguments)
    record = json.loads(RECORD.read_text("utf-8")) if RECORD.is_file() else {}
    failed = False
    with tempfile.TemporaryDirectory(prefix="diagnostics-matrix-") as place:
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place]
        subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (wheel,) = Path(place).glob("*.whl")
        for row in known.values():
            if row.name not in options.rows and (options.rows or row.large):
                continue
            with tempfile.TemporaryDirectory(prefix="diagnostics-matrix-") as folder:
                try:
                    told = measure(row, wheel, Path(folder))
                except MissingInterpreter as reason:
                    print(f"{row.name}: not run: {reason}", flush=True)
                    continue
            failed |= told["result"] != PASSED
            print(f"{row.name}: {told['result']}  {told['versions']}", flush=True)
            record[row.name] = {"date": datetime.date.today().isoformat(), **told}
            if options.record:
                RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", "utf-8")
                README.write_text(with_table(README.read_text("utf-8"), record), "utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
