"""Notebooks really run here, in kernels, and each way of going wrong is said with notebook and cell."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from rich.console import Console

from book.builder.execution import Job, execute


class TestExecute:
    def test_notebooks_that_do_what_they_should_are_kept_and_not_run_again(
        self, desk: Any, code_cell: Any
    ) -> None:
        script = desk.folder / "train.py"
        script.write_text("steps = SEED + 1\nraise IndexError('Target 2 is out of bounds.')\n")
        job = desk.job(
            code_cell(f"%run -i {script}", "raises-exception"),
            code_cell("import os, sys\nprint(steps, sys.executable, os.getcwd())\nassert SEED == 3"),
        )
        assert desk.run(job) == (["04_wrong_label_count"], [])
        assert desk.line == "notebooks: 1 to run, 0 unchanged since the last run"

        (kept,) = desk.shelf.folder.glob("*.ipynb")
        notebook = nbformat.read(kept, as_version=4)
        # The failed script's variables are at hand; the kernel is this Python; the folder is not the source's.
        steps, python, folder = notebook.cells[-1].outputs[0].text.split()
        assert (steps, python) == ("4", sys.executable)
        assert Path(folder) != desk.folder

        said = desk.said.getvalue()
        assert "on two cores this takes about 1 minute; each is kept once it is done" in said
        assert re.search(r"^1 of 1  04_wrong_label_count, \d+ s$", said, re.MULTILINE)

        assert desk.run(job) == (["04_wrong_label_count"], [])
        assert desk.line == "notebooks: none to run, 1 unchanged since the last run"

    def test_each_way_to_fail_is_named_with_notebook_and_cell(self, desk: Any, code_cell: Any) -> None:
        script = desk.folder / "train.py"
        script.write_text("raise ValueError('nobody expects this')\n")
        jobs = [
            desk.job(code_cell("outputs = 2\noutputs[3]"), code_cell("print(1)"), name="01_raises"),
            desk.job(code_cell("print('no harm')", "raises-exception"), name="02_does_not_raise"),
            # %run swallows what the script raised: for Jupyter and for papermill's own loop the cell went well.
            desk.job(code_cell(f"%run {script}"), code_cell("print(1)"), name="03_hidden_by_run"),
            desk.job(code_cell("import os\nos._exit(7)"), name="05_kernel_dies"),
            desk.job(name="06_good"),
        ]
        done, failures = desk.run(*jobs)
        assert done == ["06_good"]
        raises, does_not, hidden, dies = failures
        failed = desk.shelf.folder / "failed"
        assert raises == (
            "01_raises: code cell 2 of 3 raised, and was not meant to: TypeError: 'int' object is not "
            "subscriptable\n"
            "    | outputs = 2\n"
            "    | outputs[3]\n"
            f"    as far as it went: {failed / '01_raises.ipynb'}"
        )
        assert does_not == (
            "02_does_not_raise: code cell 2 of 2 should have raised (it is tagged raises-exception), and did not\n"
            "    | print('no harm')\n"
            f"    as far as it went: {failed / '02_does_not_raise.ipynb'}"
        )
        assert hidden == (
            "03_hidden_by_run: code cell 2 of 3 raised, and was not meant to: ValueError: nobody expects this\n"
            f"    | %run {script}\n"
            f"    as far as it went: {failed / '03_hidden_by_run.ipynb'}"
        )
        assert dies.startswith("05_kernel_dies: could not be run to its end: DeadKernelError: Kernel died")
        assert {path.name.split(".")[0] for path in desk.shelf.folder.glob("*.ipynb")} == {"06_good"}

        # A failure is not kept as a result: the next build runs it again.
        desk.run(jobs[1])
        assert desk.line == "notebooks: 1 to run, 0 unchanged since the last run"

    @pytest.mark.exhaustive
    def test_output_that_comes_late_is_waited_for(self, desk: Any, code_cell: Any) -> None:
        # As on a busy machine: the reply is sent, and the thread that sends the output gets no time for 6 s more.
        late = (
            "import sys, time\n"
            "print('loss 1.1', flush=True)\n"
            "sys.stdout.flush_timeout = sys.stderr.flush_timeout = 0.1\n"
            "get_ipython().kernel.iopub_thread.schedule(lambda: time.sleep(6))"
        )
        job = desk.job(code_cell(late))
        assert desk.run(job) == (["04_wrong_label_count"], [])
        assert desk.shelf.kept(job).cells[-1].outputs[0].text == "loss 1.1\n"

    def test_what_the_notebooks_need_is_prepared_before_the_first_runs(self, desk: Any, code_cell: Any) -> None:
        ready = desk.folder / "ready"
        job = desk.job(code_cell(f"assert open({str(ready)!r}).read() == 'ready'"))
        console = Console(file=desk.said, width=100)
        assert execute([job], desk.shelf, console, lambda: ready.write_text("ready"))[1] == []
        ready.unlink()
        execute([job], desk.shelf, console, lambda: ready.write_text("ready"))
        assert not ready.exists()  # nothing had to run

    def test_what_the_lab_builds_after_all_is_one_line(
        self, desk: Any, code_cell: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Neither a bar, nor control sequences, nor a warning that there are no widgets.
        monkeypatch.setenv("ZOO_CACHE", str(desk.folder))
        build = "built('thing-1', 'the thing', lambda folder: (folder / 'a').write_text(''))"
        job = desk.job(code_cell(f"from bugs.lab.cache import built\nprint({build}.name)"))
        desk.run(job)
        outputs = desk.shelf.kept(job).cells[-1].outputs
        line = f"Building the thing, once for this machine, in {desk.folder / 'thing-1'}\n"
        assert sorted(output.text for output in outputs) == [line, "thing-1\n"]

    @pytest.mark.parametrize("size", [0, 1, 100])
    def test_a_damaged_result_is_run_again(self, desk: Any, code_cell: Any, size: int) -> None:
        job = desk.job(code_cell("print(1)"))
        desk.run(job)
        (kept,) = desk.shelf.folder.glob("*.ipynb")
        os.truncate(kept, size)
        assert desk.run(job) == (["04_wrong_label_count"], [])
        assert desk.line == "notebooks: 1 to run, 0 unchanged since the last run"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("# Only words\n", "04.md holds no code cell: is its header a jupytext header of format myst?"),
            (
                "---\njupytext: {text_representation: {extension: .md, format_name: myst}}\n"
                "kernelspec: {display_name: Python 3, name: python3}\n---\n\n```{code-cell}\n1\n```\n",
                "04.md needs `language: python` under `kernelspec:` in its header.",
            ),
        ],
    )
    def test_a_source_that_is_no_notebook_is_a_failure(self, desk: Any, text: str, message: str) -> None:
        source = desk.folder / "04.md"
        source.write_text(text)
        assert desk.run(Job(source, ())) == ([], [f"04: {message}"])


class TestKey:
    @pytest.fixture
    def lab(self, tmp_path: Path) -> Path:
        folder = tmp_path / "lab"
        (folder / "sentences").mkdir(parents=True)
        (folder / "corpus.py").write_text("ROWS = 9000\n")
        (folder / "sentences" / "pairs.py").write_text("PAIRS = []\n")
        return folder

    @pytest.mark.parametrize(
        "change",
        [
            lambda lab, source: (lab / "corpus.py").write_text("ROWS = 9001\n"),
            lambda lab, source: (lab / "sentences" / "pairs.py").write_text("PAIRS = [1]\n"),
            lambda lab, source: (lab / "new.py").write_text(""),
            lambda lab, source: (lab / "corpus.py").rename(lab / "renamed.py"),
            lambda lab, source: source.write_text("# Other words\n"),
        ],
        ids=["a file", "a file further down", "a new file", "a name", "the source"],
    )
    def test_changes_with_what_it_depends_on(
        self, desk: Any, lab: Path, change: Callable[[Path, Path], Any]
    ) -> None:
        job = desk.job(depends_on=(lab,))
        before = job.key()
        change(lab, job.source)
        assert job.key() != before

    def test_changes_with_the_parameters(self, desk: Any) -> None:
        job = desk.job()
        assert Job(job.source, (), {"SEED": 4}).key() != job.key()

    def test_stays_when_nothing_that_people_write_has_changed(self, desk: Any, lab: Path) -> None:
        job = desk.job(depends_on=(lab,))
        before = job.key()
        (lab / "__pycache__").mkdir()
        (lab / "__pycache__" / "corpus.cpython-311.pyc").write_bytes(b"compiled")
        (lab / "corpus.py").touch()
        assert job.key() == before

    def test_a_changed_dependency_is_run_again_and_the_old_result_goes(self, desk: Any, lab: Path) -> None:
        job = desk.job(depends_on=(lab,))
        desk.run(job)
        (lab / "corpus.py").write_text("ROWS = 9001\n")
        desk.run(job)
        assert desk.line == "notebooks: 1 to run, 0 unchanged since the last run"
        assert [path.name for path in desk.shelf.folder.glob("*.ipynb")] == [f"{job.name}.{job.key()}.ipynb"]
