"""The folder that Jupyter Book reads is complete: every cage, every rule, and a table of contents naming all."""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path

import pytest
import yaml
from nbformat import NotebookNode, v4

from book.assembly import AssemblyError, assemble, jobs, report_in, write_rules
from bugs.keeper.catalogue import load_catalogue
from diagnostics.api.message_table import message_table
from diagnostics.rules.registry import all_rules

ROOT = Path(__file__).parents[3]
EXHIBITS = list(load_catalogue(ROOT).values())


def notebook(text: str = "error: labels-out-of-range\n") -> NotebookNode:
    output = v4.new_output("stream", name="stdout", text=text)
    return v4.new_notebook(
        cells=[v4.new_code_cell("print(report)", metadata={"tags": ["report"]}, outputs=[output])]
    )


class TestJobs:
    def test_one_an_exhibit_that_depends_on_both_twins_and_on_what_they_stand_on(self) -> None:
        made = jobs(EXHIBITS, ROOT / "book" / "exhibits", ROOT, seed=2)
        assert [job.name for job in made] == [exhibit.folder for exhibit in EXHIBITS]
        for job, exhibit in zip(made, EXHIBITS, strict=True):
            assert job.parameters == {"SEED": 2}
            assert all(place.exists() for place in job.dependencies)
            needed = {exhibit.script.parent, exhibit.solution.parent}
            needed |= {ROOT / name for name in ("bugs/lab", "diagnostics", "constraints.txt")}
            assert needed <= set(job.dependencies)

    def test_an_exhibit_without_a_notebook_is_named(self, tmp_path: Path) -> None:
        (tmp_path / f"{EXHIBITS[0].folder}.md").touch()
        with pytest.raises(AssemblyError) as raised:
            jobs(EXHIBITS[:2], tmp_path, ROOT, seed=0)
        folder = EXHIBITS[1].folder
        assert str(raised.value) == f"no notebook for {folder}: expected book/exhibits/{folder}.md"

    def test_a_notebook_without_an_exhibit_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "99_nothing.md").touch()
        with pytest.raises(AssemblyError) as raised:
            jobs([], tmp_path, ROOT, seed=0)
        assert str(raised.value) == (
            "no exhibit for book/exhibits/99_nothing.md: expected bugs/99_nothing/exhibit.toml"
        )


class TestAssemble:
    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        book = tmp_path / "book"
        book.mkdir()
        for name in ("_config.yml", "_toc.yml", "index.md", "guide", "_static"):
            (book / name).symlink_to(ROOT / "book" / name)
        write_rules(EXHIBITS, book / "rules")
        return assemble(EXHIBITS, {exhibit.folder: notebook() for exhibit in EXHIBITS}, book, ROOT)

    def test_the_table_of_contents_has_every_page_and_no_other(self, source: Path) -> None:
        pages = {
            str(path.relative_to(source).with_suffix(""))
            for path in source.rglob("*")
            if path.suffix in (".md", ".ipynb") and path.parent.name != "_generated"
        }
        toc = yaml.safe_load((source / "_toc.yml").read_text())
        entries = [entry for part in toc["parts"] for entry in part["chapters"]]
        entries += [section for entry in entries for section in entry.get("sections", [])]
        files = {toc["root"], *(entry["file"] for entry in entries if "file" in entry)}
        globs = [entry["glob"] for entry in entries if "glob" in entry]
        assert files <= pages
        assert {page for page in pages - files if not any(fnmatch.fnmatch(page, glob) for glob in globs)} == set()
        assert {exhibit.page for exhibit in EXHIBITS} | {f"rules/{rule.name}" for rule in all_rules()} <= pages

    def test_the_table_of_messages_lies_beside_the_pages(self, source: Path) -> None:
        assert json.loads((source / "_static" / "messages.json").read_text()) == message_table()

    def test_the_schema_of_the_json_report_lies_beside_the_pages(self, source: Path) -> None:
        schema = json.loads((source / "_static" / "report.schema.json").read_text())
        assert schema["title"] == "Report of diagnose"

    def test_the_landing_page_shows_the_report_of_the_run(self, source: Path) -> None:
        assert "</span> labels-out-of-range" in (source / "_generated" / "report.md").read_text()
        assert "_generated/report.md" in (source / "index.md").read_text()


class TestReportIn:
    def test_joins_what_the_tagged_cell_printed(self) -> None:
        both = notebook()
        both.cells[0].outputs += [
            v4.new_output("stream", name="stderr", text="a warning\n"),
            v4.new_output("stream", name="stdout", text="1 error.\n"),
        ]
        assert report_in(both, "04") == "error: labels-out-of-range\n1 error."

    def test_complains_where_nothing_was_printed(self) -> None:
        with pytest.raises(AssemblyError) as raised:
            report_in(notebook("\n"), "04_wrong_label_count")
        assert str(raised.value) == (
            "04_wrong_label_count: the landing page shows its report, but no cell tagged 'report' has printed one"
        )
