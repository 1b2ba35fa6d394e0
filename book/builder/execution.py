"""Runs the notebooks that need it, two at a time, and keeps each until something that it depends on changes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from book.builder.notebooks import SourceError, problems, read_source, run
from diagnostics.text.join import count_of

TAKES_S = (14, 44)  # a notebook on average, two at a time: all 62 took 14 minutes on idle cores, 45 on busy ones
AT_A_TIME = 2  # each trains on one core; more would also need more memory than a laptop has to spare


@dataclass(frozen=True)
class Job:
    """One notebook to be had: run, or kept from the last time.

    Attributes:
        source: the MyST notebook source.
        dependencies: files and folders whose content decides what comes out.
        parameters: values for the cell tagged `parameters`.
    """

    source: Path
    dependencies: tuple[Path, ...]
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The exhibit's folder, which is also the name of its page."""
        return self.source.stem

    def key(self) -> str:
        """Hexadecimal digest of all that decides what comes out."""
        digest = hashlib.sha256(json.dumps(self.parameters, sort_keys=True).encode())
        for place in (self.source, *self.dependencies):
            for file in _files(place):
                digest.update(f"\0{place.name}/{file.relative_to(place)}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
        return digest.hexdigest()[:16]


class Shelf:
    """Executed notebooks, one a job, each kept under the key it was made with; failures beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failed = folder / "failed"

    def kept(self, job: Job) -> NotebookNode | None:
        """The notebook that was executed from exactly what is there now, or None."""
        file = self.folder / f"{job.name}.{job.key()}.ipynb"
        try:
            return nbformat.read(file, as_version=4)
        except FileNotFoundError:
            return None
        except (ValueError, AttributeError, nbformat.ValidationError):  # truncated or emptied
            return None

    def keep(self, job: Job, key: str, executed: Path) -> None:
        """Put a good notebook in the place of any older one."""
        for older in (*self.folder.glob(f"{job.name}.*.ipynb"), *self.failed.glob(f"{job.name}.ipynb")):
            older.unlink()
        executed.replace(self.folder / f"{job.name}.{key}.ipynb")

    def keep_failed(self, job: Job, executed: Path) -> Path | None:
        """Put a failed notebook where a person can look at it; None if it did not even start."""
        if not executed.is_file():
            return None
        self.failed.mkdir(exist_ok=True)
        return executed.replace(self.failed / f"{job.name}.ipynb")


def execute(
    jobs: Sequence[Job], shelf: Shelf, console: Console, prepare: Callable[[], None] = lambda: None
) -> tuple[dict[str, NotebookNode], list[str]]:
    """Have every notebook executed.

    Args:
        jobs: the notebooks.
        shelf: where those of the last build are.
        console: shows how far it is.
        prepare: called before the first notebook runs, if any has to.

    Returns:
        The good notebooks by name, and what is wrong with each of the others.
    """
    shelf.folder.mkdir(parents=True, exist_ok=True)
    for abandoned in shelf.folder.glob("running-*"):  # by a build that was interrupted
        shutil.rmtree(abandoned, ignore_errors=True)
    done = {job.name: notebook for job in jobs if (notebook := shelf.kept(job)) is not None}
    waiting = [job for job in jobs if job.name not in done]
    console.print(f"notebooks: {_count(len(waiting))} to run, {len(done)} unchanged since the last run")
    failures: list[str] = []
    if waiting:
        console.print(f"{_estimate(len(waiting))}; each is kept once it is done, so you can stop and go on later")
        _prepare_environment(shelf.folder)
        prepare()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("cells"))
        with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
            pool = ThreadPoolExecutor(AT_A_TIME)
            try:
                ended: list[str] = []
                results = pool.map(
                    lambda job: _execute_and_say(job, shelf, progress, ended, len(waiting)), waiting
                )
                for job, (notebook, failure) in zip(waiting, results, strict=True):
                    if notebook is None:
                        failures.append(failure)
                    else:
                        done[job.name] = notebook
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            pool.shutdown()
    return done, failures


def _execute_and_say(
    job: Job, shelf: Shelf, progress: Progress, ended: list[str], count: int
) -> tuple[NotebookNode | None, str]:
    """Run one notebook, and say that it has ended: without a terminal there is no bar."""
    started = time.monotonic()
    result = _execute_one(job, shelf, progress)
    ended.append(job.name)
    what = "" if result[0] is not None else ", failed"
    progress.console.print(f"{len(ended)} of {count}  {job.name}, {time.monotonic() - started:.0f} s{what}")
    return result


def _execute_one(job: Job, shelf: Shelf, progress: Progress) -> tuple[NotebookNode | None, str]:
    """Run one notebook; return it, or None and what is wrong."""
    key = job.key()  # of what is about to run: what is edited while it runs belongs to the next build
    try:
        notebook = read_source(job.source)
    except SourceError as error:
        return None, f"{job.name}: {error}"
    cells = sum(cell.cell_type == "code" for cell in notebook.cells) + bool(job.parameters)
    task = progress.add_task(job.name, total=cells)
    with tempfile.TemporaryDirectory(prefix="running-", dir=shelf.folder) as scratch:
        target = Path(scratch) / "executed.ipynb"
        elsewhere = Path(scratch) / "somewhere"  # a notebook must run wherever its reader has put it
        elsewhere.mkdir()
        try:
            executed = run(notebook, target, job.parameters, elsewhere, lambda: progress.advance(task))
            found = problems(executed)
        except Exception as error:  # a kernel that died or hangs, or papermill itself: the build says so and fails
            found = [f"could not be run to its end: {type(error).__name__}: {error}"]
        if not found:
            shelf.keep(job, key, target)
            return executed, ""
        place = shelf.keep_failed(job, target)
    report = "\n".join(f"{job.name}: {problem}" for problem in found)
    return None, report + (f"\n    as far as it went: {place}" if place else "")


def _prepare_environment(folder: Path) -> None:
    """Set what every kernel inherits: this Python, one core each, no network, and no bars that move."""
    from ipykernel.kernelspec import write_kernel_spec

    kernels = folder / "jupyter"
    shutil.rmtree(kernels, ignore_errors=True)
    write_kernel_spec(kernels / "kernels" / "python3")  # whatever else is called python3 on this machine
    os.environ |= {
        "JUPYTER_PATH": str(kernels),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def _files(place: Path) -> Iterable[Path]:
    """List the files of a folder that people write, in a fixed order; or the one file."""
    if place.is_file():
        return [place]
    files = (file for file in place.rglob("*") if file.is_file())
    return sorted(file for file in files if "__pycache__" not in file.parts and file.suffix != ".pyc")


def _estimate(notebooks: int) -> str:
    """Say how long so many notebooks take, as measured on two cores, idle and busy."""
    low, high = (max(1, round(notebooks * each / 60)) for each in TAKES_S)
    span = f"about {count_of(low, 'minute')}" if low == high else f"{low} to {high} minutes"
    return f"on two cores this takes {span}"


def _count(number: int) -> str:
    return "none" if number == 0 else str(number)
