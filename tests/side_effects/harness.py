"""Runs a script twice, plain and under `diagnose run`, and says what is not the same.

It compares standard output, exit code, files written, reads of the script's own datasets and collators, and what
the script leaves behind: weights, gradients, optimizer state, logged metrics, every other value in its variables,
random states and settings of the process. It leaves run times out of the comparison, and gives the peak of memory
a margin.

$ python tests/side_effects/harness.py train.py --epochs 1

The script must be deterministic: run twice plain, it must come out the same. `compare(…, ranks=2)` starts it by
torchrun, and compares each rank.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORDER = Path(__file__).resolve().parent / "recorder"
DRIVER = Path(__file__).resolve().parent / "drive.py"
OBSERVER = ("-m", "diagnostics", "run", "--fail-on", "never", "--format", "json", "--output", "{report}")
TORCHRUN = ("-m", "torch.distributed.run", "--standalone")
TIMEOUT_S = 900
NUMBER = r"[0-9.]+(?:e[+-]?[0-9]+)?"
# What differs from run to run of the same program: durations and rates, and names of temporary files.
RUN_TIMES = (
    rf"'?\w*(?:_runtime|_per_second|_preparation_time)'?\s*[:=]\s*'?{NUMBER}'?",
    r"\b\d+(?:\.\d+)?\s?(?:ms|us|s)/(?:step|epoch|it)",
    r"\b\d+(?:\.\d+)?\s?(?:it|step|steps|samples|tokens)/s",
    r"\b(?:\d+:)*\d+m?s\b(?= )",
    rf"\b{NUMBER} (?:s|ms|seconds)\b",
    r"\d\d:\d\d(?::\d\d)?",
    r"/tmp/[\w./-]+",
)
PEAK = "peak of memory, MiB"  # in the record
MOST_MIB, MOST_SHARE = 192, 0.25  # beyond the plain peak; small programs grow by 30 MiB, the library itself
TIMED_FILES = re.compile(r"events\.out\.tfevents|training_args\.bin$")


@dataclass(frozen=True)
class Outcome:
    """How one of the two runs ended.

    Attributes:
        exit_code: of the process.
        stdout: what it printed, run times left out.
        stderr: what it printed there, as it is; not compared.
        files: by path in the working directory, a digest of what was written.
        record: what the recorder wrote down; see `recorder/recording.py`. Of ranks, each name says which.
        reports: the JSON reports of `diagnose run`, one of each rank; empty for the plain run.
        peaks_mib: the most memory that each process held at once.
    """

    exit_code: int
    stdout: str
    stderr: str
    files: dict[str, str]
    record: dict[str, str]
    reports: tuple[dict[str, Any], ...] = ()
    peaks_mib: tuple[int, ...] = ()

    @property
    def report(self) -> dict[str, Any]:
        """The report of the only process, or of rank 0; empty if there is none."""
        return self.reports[0] if self.reports else {}


@dataclass(frozen=True)
class Comparison:
    """Two runs of one script.

    Attributes:
        plain: by `python`.
        observed: by `diagnose run`.
    """

    plain: Outcome
    observed: Outcome

    @property
    def differences(self) -> list[str]:
        """Whatever is not the same, a line each; empty if all is."""
        plain, observed = self.plain, self.observed
        lines = []
        if plain.exit_code != observed.exit_code:
            lines.append(f"exit code: {plain.exit_code} plain, {observed.exit_code} observed")
        if plain.stdout != observed.stdout:
            lines += _first_difference(plain.stdout.splitlines(), observed.stdout.splitlines())
        for what, one, other in (
            ("file ", plain.files, observed.files),
            ("", plain.record, observed.record),
        ):
            for name in sorted(one.keys() | other.keys()):
                if one.get(name) != other.get(name):
                    lines.append(f"{what}{name}: {one.get(name)} plain, {other.get(name)} observed")
        for one_mib, other_mib in zip(plain.peaks_mib, observed.peaks_mib, strict=False):
            if other_mib > one_mib + MOST_MIB + MOST_SHARE * one_mib:
                lines.append(f"{PEAK}: {one_mib} plain, {other_mib} observed")
        return lines

    @property
    def alarms(self) -> list[str]:
        """Errors and warnings of the report, and faults of the library, a line each."""
        lines = []
        for report in self.observed.reports or ({},):
            if not report:
                lines.append("no report was written")
                continue
            found = [f for f in report["findings"] if f["severity"] in ("error", "warning")]
            lines += [f"{f['severity']}: {f['rule']}: {f['message']}" for f in found] + report["faults"]
        return lines


def compare(
    script: Path,
    *arguments: str,
    sources: Path | None = None,
    observer: Sequence[str] = OBSERVER,
    environment: dict[str, str] | None = None,
    timeout: float = TIMEOUT_S,
    ranks: int = 0,
) -> Comparison:
    """Run `script` twice, each time in an empty working directory of the same name, and compare.

    Args:
        script: a Python file.
        arguments: its own.
        sources: the folder in which its classes are defined; the script's own if None.
        observer: what follows `python` before the script in the second run; `{report}` is the file for the report.
        environment: variables for both runs, beside this process's own.
        timeout: seconds for each run.
        ranks: processes that torchrun starts; 0 to start the script itself.

    Raises:
        subprocess.TimeoutExpired: a run took longer.
    """
    script = script.resolve()
    with tempfile.TemporaryDirectory(prefix="side-effects-") as folder:

        def run(before: Sequence[str]) -> Outcome:
            return _run(
                Path(folder),
                [*before, str(script), *arguments],
                script,
                sources or script.parent,
                environment or {},
                timeout,
                ranks,
            )

        return Comparison(run([]), run(observer))


def compare_program(path: Path) -> Comparison:
    """Compare one of the programs of `tests/healthy/`, which have `build` and `train`."""
    return compare(DRIVER, str(path.resolve()), sources=path.resolve().parent)


def _run(
    folder: Path,
    arguments: Sequence[str],
    script: Path,
    sources: Path,
    more: dict[str, str],
    timeout: float,
    ranks: int,
) -> Outcome:
    work, record, report = folder / "work", folder / "record.json", folder / "report.json"
    work.mkdir()
    others = [f".rank{rank}" for rank in range(1, ranks)]
    records, reports = (
        [file, *(file.with_suffix(other + file.suffix) for other in others)] for file in (record, report)
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(RECORDER), str(ROOT)]),
        "PYTHONHASHSEED": "0",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "OMP_NUM_THREADS": "1",
        "SIDE_EFFECTS_RECORD": str(record),
        "SIDE_EFFECTS_SCRIPT": str(script),
        "SIDE_EFFECTS_FOLDER": str(sources),
        "SIDE_EFFECTS_RANKS": str(ranks),
        **more,
    }
    logs = folder / "logs"  # one of each rank: in one stream their lines would mix as they come
    launch = [*TORCHRUN, "--nproc-per-node", str(ranks), "--redirects", "1", "--log-dir", str(logs)]
    done = subprocess.run(
        [sys.executable, *(launch if ranks else ()), *(word.format(report=report) for word in arguments)],
        cwd=work,
        env=environment,
        capture_output=True,  # as bytes: universal newlines would part the redraws of a progress bar
        timeout=timeout,
        stdin=subprocess.DEVNULL,
    )
    kept = list(map(_load, records))
    peaks = tuple(values.pop(PEAK) for values in kept if PEAK in values)
    of_ranks = [file.read_bytes() for file in sorted(logs.glob("*/attempt_0/*/stdout.log"))]
    outcome = Outcome(
        done.returncode,
        _without_run_times(b"".join([done.stdout, *of_ranks]).decode("utf-8", "replace")),
        done.stderr.decode("utf-8", "replace"),
        {str(file.relative_to(work)): _content(file) for file in sorted(work.rglob("*")) if file.is_file()},
        {
            f"rank {rank}: {name}" if ranks else name: value
            for rank, values in enumerate(kept)
            for name, value in values.items()
        },
        tuple(map(_load, reports)),
        peaks,
    )
    shutil.rmtree(work)
    shutil.rmtree(logs, ignore_errors=True)
    for file in (*records, *reports):
        file.unlink(missing_ok=True)
    return outcome


def _load(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def _content(file: Path) -> str:
    if TIMED_FILES.search(file.name):
        return "not compared"
    content = file.read_bytes()
    if file.suffix in (".json", ".txt", ".csv", ".log", ".md"):
        content = _without_run_times(content.decode("utf-8", "replace")).encode()
    return f"{len(content)} bytes, {hashlib.blake2b(content, digest_size=8).hexdigest()}"


def _without_run_times(text: str) -> str:
    text = "\n".join(map(_last_drawn, text.split("\n")))
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    for pattern in RUN_TIMES:
        text = re.sub(pattern, "…", text)
    return text


def _last_drawn(line: str) -> str:
    """What is left of a line that a progress bar has redrawn; what it drew on the way depends on the time.

    So do the spaces at its end, with which Keras covers what was longer.
    """
    drawn = line.replace("\x08", "").rpartition("\r")[2]
    return drawn.rstrip(" ") if drawn != line else line


def _first_difference(plain: list[str], observed: list[str]) -> list[str]:
    for number in range(max(len(plain), len(observed))):
        one, other = (lines[number] if number < len(lines) else "nothing" for lines in (plain, observed))
        if one != other:
            return [f"standard output, line {number + 1}: {one!r} plain, {other!r} observed"]
    return ["standard output: line ends differ"]


def main(arguments: list[str]) -> int:
    """Compare the script named first; return 0 if nothing differs and nothing is reported, 1 otherwise."""
    if not arguments or not Path(arguments[0]).is_file():
        print(__doc__)
        return 2
    comparison = compare(Path(arguments[0]), *arguments[1:])
    if not comparison.plain.record:
        print(f"{arguments[0]} left no record; its standard error:\n{comparison.plain.stderr[-2000:]}")
        return 2
    print(f"compared {len(comparison.plain.record)} values, {len(comparison.plain.files)} files, standard output")
    for one, other in zip(comparison.plain.peaks_mib, comparison.observed.peaks_mib, strict=False):
        print(f"{PEAK}: {one} plain, {other} observed")
    for line in comparison.differences:
        print(f"differs: {line}")
    for line in comparison.alarms:
        print(f"reported: {line}")
    return 1 if comparison.differences or comparison.alarms else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
