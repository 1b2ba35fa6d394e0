"""A warning of Jupyter Book is a failure, and a site is made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from book.builder.rendering import RenderingFailed, _name_controls, render

ROOT = Path(__file__).parents[4]


class TestRender:
    def test_a_warning_is_a_failure_each_time_and_a_mended_page_is_made_once(self, tmp_path: Path) -> None:
        source = tmp_path / "_build" / "source"
        source.mkdir(parents=True)
        (source / "_config.yml").write_text("title: Small\nexecute: {execute_notebooks: 'off'}\n")
        (source / "_toc.yml").write_text("format: jb-book\nroot: index\n")
        page, constraints = source / "index.md", ROOT / "constraints.txt"
        page.write_text("# Small\n\n[a rule](rules/nowhere.md)\n")
        for _ in range(2):  # Sphinx would say nothing about a page that it has seen before
            with pytest.raises(RenderingFailed) as raised:
                render(source, tmp_path, constraints)
            assert str(raised.value).startswith("Jupyter Book failed, or warned, and a warning is an error here:")
            assert "index.md:3: WARNING: " in str(raised.value)
            assert "rules/nowhere.md" in str(raised.value)
        page.write_text("# Small\n")
        assert render(source, tmp_path, constraints) is True
        assert "<h1>Small" in (tmp_path / "_build" / "html" / "index.html").read_text()
        assert render(source, tmp_path, constraints) is False

    def test_the_download_button_offers_the_copy_and_not_the_page(self, tmp_path: Path) -> None:
        source = tmp_path / "_build" / "source"
        (source / "_copies" / "_sources").mkdir(parents=True)
        (source / "_config.yml").write_text("title: Small\nexecute: {execute_notebooks: 'off'}\n")
        (source / "_toc.yml").write_text("format: jb-book\nroot: index\n")
        (source / "index.md").write_text("# Small\n\nThe answer.\n")
        (source / "_copies" / "_sources" / "index.md").write_text("# Small\n")
        render(source, tmp_path, ROOT / "constraints.txt")
        site = tmp_path / "_build" / "html"
        assert 'href="_sources/index.md"' in (site / "index.html").read_text()
        assert (site / "_sources" / "index.md").read_text() == "# Small\n"

    def test_the_sidebars_folds_have_names(self, tmp_path: Path) -> None:
        source = tmp_path / "_build" / "source"
        source.mkdir(parents=True)
        (source / "_config.yml").write_text("title: Small\nexecute: {execute_notebooks: 'off'}\n")
        toc = "format: jb-book\nroot: index\nchapters:\n- {file: one, sections: [{file: two}]}\n"
        (source / "_toc.yml").write_text(toc)
        for name in ("index", "one", "two"):
            (source / f"{name}.md").write_text(f"# The {name} & more\n")
        render(source, tmp_path, ROOT / "constraints.txt")
        for name in ("index", "one", "two"):  # on its own page, the link is of another kind
            page = (tmp_path / "_build" / "html" / f"{name}.html").read_text()
            assert (
                page.count("<summary") == page.count('<summary aria-label="Pages below The one &amp; more">') == 1
            )


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (
            '<button class="btn search-button-field x" title="Search" aria-label="Search" data-a>',
            '<button class="btn search-button-field x" title="Search" data-a>',
        ),
        ('<button class="btn search-button" aria-label="Search">', None),  # an icon alone needs its name
        (
            '<summary aria-label="Toggle hidden content">\n<p>Show the answer</p>',
            "<summary>\n<p>Show the answer</p>",
        ),
        ('<i class="theme-switch fa-solid" title="Light"></i>', '<i class="theme-switch fa-solid"></i>'),
        (
            '<a class="reference internal" href="x">1 · A "word"</a><details><summary>',
            '<a class="reference internal" href="x">1 · A "word"</a><details>'
            '<summary aria-label="Pages below 1 · A &quot;word&quot;">',
        ),
    ],
)
def test_buttons_and_folds_are_named_as_what_is_written_on_them(
    tmp_path: Path, theirs: str, ours: str | None
) -> None:
    page = tmp_path / "page.html"
    page.write_text(theirs, "utf-8")
    _name_controls(tmp_path)
    assert page.read_text("utf-8") == (theirs if ours is None else ours)
