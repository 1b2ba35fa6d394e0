"""The folder that Jupyter Book reads is complete: every cage, every rule, and a table of contents naming all."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat import NotebookNode, v4

from book.builder.assembly import WRITTEN, AssemblyError, assemble, chapter_jobs, jobs, report_in, write_rules
from book.builder.outline import load, shown
from book.panels import CURVE
from bugs.zoo.keeper.catalogue import load_catalogue
from diagnostics.api.message_table import message_table
from diagnostics.rules.registry import all_rules

ROOT = Path(__file__).parents[4]
EXHIBITS = list(load_catalogue(ROOT).values())
CHAPTERS = load(ROOT / "book" / "chapters")


REPORT = '<iframe srcdoc="labels-out-of-range"></iframe>'


def notebook(shown: str = REPORT, title: str = "# A title\n\nIts first words.") -> NotebookNode:
    output = v4.new_output("display_data", data={"text/html": shown} if shown else {})
    noted = {"lines": [["training loss", [[1, 2.0], [2, 1.0]]]], "chance": 1.1, "shape": ""}
    curve = v4.new_output("display_data", data={CURVE: noted})
    report = v4.new_code_cell("show(report)", metadata={"tags": ["report-page"]}, outputs=[output, curve])
    return v4.new_notebook(cells=[v4.new_markdown_cell(title), report])


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


class TestChapterJobs:
    def test_one_a_chapter_and_one_a_mystery_with_what_they_stand_on(self) -> None:
        made = {job.name: job for job in chapter_jobs(CHAPTERS, ROOT / "book", ROOT, seed=2)}
        assert list(made) == [name for c in CHAPTERS for name in (c.name, c.mystery) if name]
        for chapter in CHAPTERS:
            needed = {e.script.parent for e in EXHIBITS if e.id in (*chapter.cages, *chapter.also)}
            assert needed <= set(made[chapter.name].dependencies)
            if chapter.mystery:
                assert ROOT / "book" / "mysteries" / f"{chapter.mystery}.py" in made[chapter.mystery].dependencies
        assert all(place.exists() for job in made.values() for place in job.dependencies)

    def test_a_mystery_without_a_solution_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(AssemblyError) as raised:
            chapter_jobs(CHAPTERS[:1], tmp_path, ROOT, seed=0)
        assert str(raised.value) == "no solution of mystery_01.py: expected book/mysteries/mystery_01.md"


class TestAssemble:
    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        book = tmp_path / "book"
        book.mkdir()
        for name in (*WRITTEN, "_toc.yml", "chapters", "mysteries"):
            (book / name).symlink_to(ROOT / "book" / name)
        write_rules(EXHIBITS, book / "rules")
        names = [exhibit.folder for exhibit in EXHIBITS]
        names += [chapter.name for chapter in CHAPTERS]
        names += [chapter.mystery for chapter in CHAPTERS if chapter.mystery]
        return assemble(EXHIBITS, CHAPTERS, {name: notebook() for name in names}, book, ROOT)

    def test_the_table_of_contents_has_every_page_and_no_other(self, source: Path) -> None:
        pages = {
            str(path.relative_to(source).with_suffix(""))
            for path in source.rglob("*")
            if path.suffix in (".md", ".ipynb")
            and path.relative_to(source).parts[0] not in ("_generated", "_copies", "_extra")
        }
        toc = yaml.safe_load((source / "_toc.yml").read_text())
        entries = [entry for part in toc["parts"] for entry in part["chapters"]]
        entries += [section for entry in entries for section in entry.get("sections", [])]
        files = {toc["root"], *(entry["file"] for entry in entries if "file" in entry)}
        assert files <= pages
        assert pages - files == {f"rules/{rule.name}" for rule in all_rules()}
        assert {exhibit.page for exhibit in EXHIBITS} <= files

    def test_the_page_of_a_rule_is_linked_from_the_index_and_stays_out_of_the_sidebar(self, source: Path) -> None:
        index = (source / "rules" / "index.md").read_text()
        for rule in all_rules():
            assert (source / "rules" / f"{rule.name}.md").read_text().startswith("---\norphan: true\n---\n")
            assert f"[{rule.name}]({rule.name}.md)" in index

    def test_the_list_of_rules_finds_its_script(self, source: Path) -> None:
        (script,) = re.findall(r'src="([^"]+)"', (source / "rules" / "index.md").read_text())
        assert (source / "_extra" / "rules" / script).resolve().is_file()

    def test_a_student_downloads_no_answers_and_no_outputs_and_a_teacher_both(self, source: Path) -> None:
        for folder in ("chapters", "exhibits"):
            for page in (source / folder).glob("*.ipynb"):
                whole = nbformat.read(page, as_version=4)
                student = nbformat.read(source / "_copies" / "_sources" / folder / page.name, as_version=4)
                assert nbformat.read(source / "_extra" / "teacher" / folder / page.name, as_version=4) == whole
                assert any(cell.get("outputs") for cell in whole.cells)
                assert not any(cell.get("outputs") for cell in student.cells)
                nbformat.validate(student)
        links = (source / "_generated" / "teacher.md").read_text()
        assert all(f'"../teacher/{exhibit.page}.ipynb"' in links for exhibit in EXHIBITS)

    def test_the_table_of_messages_lies_beside_the_pages(self, source: Path) -> None:
        assert json.loads((source / "_static" / "messages.json").read_text()) == message_table()

    def test_the_page_that_takes_a_traceback_finds_its_script_and_its_data(self, source: Path) -> None:
        loaded = re.findall(r'src="([^"]+)"', (source / "paste.md").read_text())
        assert loaded == ["_static/messages.js", "_static/dom.js", "_static/paste.js"]
        assert all((source / "_extra" / script).is_file() for script in loaded)

    def test_the_page_that_opens_a_report_finds_its_scripts_and_its_data(self, source: Path) -> None:
        loaded = re.findall(r'src="([^"]+)"', (source / "report.md").read_text())
        assert loaded == ["_static/rules.js", "_static/dom.js", "_static/report.js"]
        assert all((source / "_extra" / script).is_file() for script in loaded)

    def test_no_page_loads_the_scripts_of_another(self, source: Path) -> None:
        assert list((source / "_static").rglob("*.js")) == []  # Jupyter Book loads these on every page

    def test_the_schema_of_the_json_report_lies_beside_the_pages(self, source: Path) -> None:
        schema = json.loads((source / "_static" / "report.schema.json").read_text())
        assert schema["title"] == "Report of diagnose"

    def test_a_text_for_language_models_names_the_pages_of_the_contents_with_a_line_each(
        self, source: Path
    ) -> None:
        text = (source / "_extra" / "llms.txt").read_text()
        assert text.startswith(
            "# Bug Zoo\n\n> Your training fails, or it runs and learns nothing. Here you learn how to find out why"
        )
        listed = re.findall(r"^- \[(.+?)\]\((.+?)\.html\): (\S.*)$", text, re.MULTILINE)
        assert len(listed) == text.count("\n- ")
        toc = yaml.safe_load((source / "_toc.yml").read_text())
        assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == [
            part["caption"] for part in toc["parts"]
        ]
        entries = [entry for part in toc["parts"] for entry in part["chapters"]]
        entries += [section for entry in entries for section in entry.get("sections", [])]
        lines = {page: line for _, page, line in listed}
        assert set(lines) == {re.sub(r"\.(md|ipynb)$", "", entry["file"]) for entry in entries if "file" in entry}
        assert all(list(source.glob(f"{page}.*")) for page in lines)
        assert all(rule in lines[exhibit.page] for exhibit in EXHIBITS for rule in exhibit.rules)
        assert all(lines[chapter.page] == f"{chapter.purpose}." for chapter in CHAPTERS)
        assert lines["guide/install"].startswith("You need Python")
        assert not re.search(r"\]\(|:::", "".join(lines.values()))
        assert len(text) < 20_000
        assert "html_extra_path: [_extra]" in (source / "_config.yml").read_text()

    def test_the_landing_page_shows_the_report_of_the_run(self, source: Path) -> None:
        assert REPORT in (source / "_generated" / "report.md").read_text()
        assert "_generated/report.md" in (source / "index.md").read_text()

    def test_cards_and_sidebar_have_one_order(self, source: Path) -> None:
        toc = yaml.safe_load((source / "_toc.yml").read_text())
        (chapters,) = (part["chapters"] for part in toc["parts"] if part["caption"] == "Chapters")
        in_sidebar = [section["file"] for entry in chapters for section in entry.get("sections", [])]
        cards = (source / "exhibits" / "index.md").read_text()
        links = [line.removeprefix(":link: ") for line in cards.splitlines() if line.startswith(":link: ")]
        assert [f"exhibits/{link}" for link in links] == in_sidebar
        assert sorted(in_sidebar) == sorted(exhibit.page for exhibit in EXHIBITS)
        path = (source / "_generated" / "path.md").read_text()
        places = [path.index(f"]({chapter.file})") for chapter in CHAPTERS]
        assert places == sorted(places)
        assert [entry["file"] for entry in chapters] == [chapter.page for chapter in CHAPTERS]

    def test_an_exhibit_leads_to_its_chapter_its_rules_its_sources_and_its_neighbours(self, source: Path) -> None:
        in_order = [next(e for e in EXHIBITS if e.id == cage) for chapter in CHAPTERS for cage in chapter.cages]
        for one, following in itertools.pairwise(in_order):
            first, last = (nbformat.read(source / f"{e.page}.ipynb", as_version=4) for e in (one, following))
            assert f"**Next**: [{shown(following)}]({following.folder}.ipynb)" in first.cells[-1].source
            assert f"Follows [{shown(one)}]({one.folder}.ipynb)." in last.cells[0].source
        for chapter in CHAPTERS:
            for exhibit in (exhibit for exhibit in EXHIBITS if exhibit.id in chapter.cages):
                page = nbformat.read(source / f"{exhibit.page}.ipynb", as_version=4)
                head = page.cells[0].source
                number = f"{chapter.number}.{chapter.cages.index(exhibit.id) + 1}"
                assert head.startswith(f"# {number} · {exhibit.title}\n")
                assert f"`nox -s bug-{exhibit.id}` · [Chapter {chapter.number}, {chapter.title}]" in head
                assert all(address in page.cells[-1].source for address in exhibit.sources)
                assert all(f"[{rule}](../rules/{rule}.md)" in page.cells[-1].source for rule in exhibit.rules)
                assert not any(
                    rule in page.cells[0].source for rule in exhibit.rules
                )  # it would give the cause away
                assert f'<a href="../_sources/{exhibit.page}.ipynb" download>' in page.cells[0].source


class TestReportIn:
    def test_is_the_frame_that_the_tagged_cell_shows(self) -> None:
        assert report_in(notebook(), "01_ten_minutes") == REPORT

    def test_complains_where_nothing_was_shown(self) -> None:
        with pytest.raises(AssemblyError) as raised:
            report_in(notebook(""), "01_ten_minutes")
        assert str(raised.value) == (
            "01_ten_minutes: the landing page shows its report, but no cell tagged 'report-page' has shown one"
        )
