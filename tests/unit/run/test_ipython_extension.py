"""`%load_ext diagnostics` and `%%diagnose`, in a real shell, where nothing trains."""

import random
import re

import pytest

from diagnostics.errors import InvalidInput
from diagnostics.run.notebook.cell_options import CellOptions, options_of_cell, transformed
from tests.support.ipython import notebook


@pytest.fixture
def cells(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with notebook(tmp_path) as started:
        started.run("%load_ext diagnostics")
        yield started
        started.run("%unload_ext diagnostics")


class TestTransformed:
    @pytest.mark.parametrize(
        ("cell", "run"),
        [
            ("%%diagnose\nx = 1\n", "# %%diagnose\nx = 1\n"),
            ("\n\n%%diagnose report --verbose\nx = 1\n", "\n\n# %%diagnose report --verbose\nx = 1\n"),
            ("%%diagnose\n\n    x = 1\n    y = 2\n", "    # %%diagnose\n\n    x = 1\n    y = 2\n"),
            ("%%diagnose\n%%time\nx = 1\n", "%%time\nx = 1\n"),
            ("%%diagnose", "# %%diagnose\n"),
            ("%%diagnose?", "%%diagnose?"),
            ("%%diagnose --no-such-option\nx = 1\n", "%%diagnose --no-such-option\nx = 1\n"),
            ("%%diagnosed\nx\n", "%%diagnosed\nx\n"),
            ("x = 1\n%%diagnose\n", "x = 1\n%%diagnose\n"),
            ("", ""),
        ],
    )
    def test_the_line_becomes_a_comment(self, cell, run):
        assert "".join(transformed(cell.splitlines(keepends=True))) == run

    def test_options(self):
        assert options_of_cell("x = 1") is None
        assert options_of_cell("%%time\n%%diagnose\nx") == CellOptions()
        given = options_of_cell("%%diagnose report --ignore loss-plateau --output out.html --verbose\nx")
        assert (given.name, given.ignores, str(given.output)) == ("report", {"loss-plateau": ""}, "out.html")
        assert given.verbose

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("--fail", "%%diagnose: unrecognized arguments: --fail. It takes: %%diagnose [NAME] [--ignore RULE"),
            ("2x", "%%diagnose was given '2x', which is no name for a report."),
            ("'x", '%%diagnose: No closing quotation in "\'x".'),
            ("--ignore nothing", "--ignore names 'nothing', but there is no such rule."),
            (
                "--output out.pdf",
                "--output was given out.pdf; the name must end in .txt, .json, .html, .md, .sarif.",
            ),
            ("--output no/out.md", "--output was given no/out.md, but there is no folder no."),
        ],
    )
    def test_wrong_options_are_told(self, line, said):
        with pytest.raises(InvalidInput) as raised:
            options_of_cell(f"%%diagnose {line}\nx")
        assert str(raised.value).startswith(said)


class TestCell:
    def test_runs_as_it_is_and_shows_the_report_after_it(self, cells, capsys):
        result = cells.run("%%diagnose\nx = 6\nprint('hello')\nx * 7")
        assert capsys.readouterr().out == "hello\nOut[2]: 42\n"
        assert (result.result, cells["x"], cells["_"]) == (42, 6, 42)
        (report,) = cells.reports
        assert report.startswith("ran In[2], ")
        assert "none found: no Trainer.train, no Keras fit" in report

    def test_shows_an_exception_as_without_it(self, cells, capsys):
        plain = cells.run("# a comment\nraise KeyError('lr')")
        without = capsys.readouterr().out
        observed = cells.run("%%diagnose\nraise KeyError('lr')")
        shown = capsys.readouterr().out
        assert (plain.success, observed.success, type(observed.error_in_exec)) == (False, False, KeyError)
        numbers = re.compile(r"ipython-input-\d+-\w+|In\[\d+\]")
        assert numbers.sub("", shown).replace("# %%diagnose", "# a comment") == numbers.sub("", without)
        (report,) = cells.reports
        assert re.match(r"ran In\[3\], [\d.]+ s, ended by KeyError\n", report)
        assert "your line   In[3]:2: raise KeyError('lr')" in report

    def test_of_a_cell_that_does_not_compile_says_nothing(self, cells, capsys):
        result = cells.run("%%diagnose\ndef f(:")
        assert isinstance(result.error_before_exec, SyntaxError)
        assert cells.reports == []
        assert cells.run("%%diagnose\n1").success
        assert len(cells.reports) == 1

    def test_ctrl_c_gives_the_report_of_what_was_seen(self, cells, capsys):
        result = cells.run("%%diagnose\nx = 1\nraise KeyboardInterrupt")
        assert isinstance(result.error_in_exec, KeyboardInterrupt)
        (report,) = cells.reports
        assert "interrupted" in report.splitlines()[0]
        assert "KeyboardInterrupt" in capsys.readouterr().out

    def test_await_at_the_top_level(self, cells):
        result = cells.run("%%diagnose\nimport asyncio\nx = await asyncio.sleep(0, 'awaited')\nx")
        assert (result.success, result.result) == (True, "awaited")
        assert len(cells.reports) == 1

    def test_a_cell_within_a_cell_is_part_of_it(self, cells):
        assert cells.run("%%diagnose\nget_ipython().run_cell('%%diagnose\\ny = 2\\n');\nz = y + 1").success
        assert cells["z"] == 3
        assert len(cells.reports) == 1

    @pytest.mark.parametrize("cell", ["%%time\n%%diagnose\nx = 5", "%%diagnose\n%%time\nx = 5"])
    def test_together_with_other_magics(self, cells, capsys, cell):
        assert cells.run(cell).success
        assert cells["x"] == 5
        assert "Wall time" in capsys.readouterr().out
        assert len(cells.reports) == 1

    def test_within_capture(self, cells):
        assert cells.run("%%capture out\n%%diagnose\nprint('hello')").success
        assert cells["out"].stdout == "hello\n"
        assert len(cells.reports) == 1

    def test_called_as_a_function(self, cells):
        assert cells.run("get_ipython().run_cell_magic('diagnose', 'report', 'x = 8')").success
        assert (cells["x"], str(cells["report"])) == (8, cells.reports[0])

    def test_keeps_the_report_where_it_is_asked_to(self, cells, tmp_path):
        cells.run("%%diagnose found --output found.json --verbose\nx = 1")
        assert cells["found"].script == "In[2]"
        assert cells["found"].verbose
        assert '"title": "ran In[2]' in (tmp_path / "found.json").read_text()

    def test_wrong_options_are_told_and_the_cell_is_not_run(self, cells, capsys):
        result = cells.run("%%diagnose --fail-on error\nx = 'ran'")
        assert not result.success
        assert "x" not in cells.shell.user_ns
        shown = capsys.readouterr()
        assert "UsageError: %%diagnose: unrecognized arguments: --fail-on" in shown.out + shown.err
        assert "Traceback" not in shown.out + shown.err

    def test_help(self, cells, capsys):
        assert (
            "Run the cell unchanged, and show below its output"
            in cells.shell.find_magic("diagnose", "cell").__doc__
        )


class TestExtension:
    def test_random_numbers_are_the_same(self, tmp_path):
        with notebook(tmp_path) as cells:
            random.seed(3)
            expected = random.Random(3).random()
            cells.run("%load_ext diagnostics")
            cells.run("%%diagnose\n1")
            assert random.random() == expected

    def test_can_be_loaded_twice_reloaded_and_unloaded(self, tmp_path, capsys):
        with notebook(tmp_path) as cells:
            events, cleanups = cells.shell.events.callbacks, cells.shell.input_transformers_cleanup
            before = {name: list(found) for name, found in events.items()}, list(cleanups)
            cells.run("%load_ext diagnostics\n%load_ext diagnostics\n%reload_ext diagnostics")
            assert cells.run("%%diagnose\n1").success
            assert len(cells.reports) == 1
            cells.run("%unload_ext diagnostics")
            assert ({name: list(found) for name, found in events.items()}, list(cleanups)) == before
            capsys.readouterr()
            cells.run("%%diagnose\n1")
            assert "Cell magic `%%diagnose` not found" in "".join(capsys.readouterr())
            assert len(cells.reports) == 1

    def test_a_fault_of_ours_is_one_line(self, cells, capsys, monkeypatch):
        monkeypatch.setattr("diagnostics.run.notebook.cell.merged", lambda *_, **__: 1 / 0)
        assert cells.run("%%diagnose\n1").success
        assert (
            capsys.readouterr().err == "diagnose: making the report failed: ZeroDivisionError: division by zero\n"
        )
