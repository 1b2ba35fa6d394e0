"""A site that would fetch anything from elsewhere is no site, and a warning of Jupyter Book no success."""

from __future__ import annotations

from pathlib import Path

import pytest

from book.builder.rendering import RenderingFailed, fetched_from_elsewhere, figures_without_words, render

ROOT = Path(__file__).parents[4]


class TestFetchedFromElsewhere:
    @pytest.mark.parametrize(
        ("html", "found"),
        [
            ('<script src="https://cdn.example/mathjax.js"></script>', ["https://cdn.example/mathjax.js"]),
            ('<script src="//cdn.example/x.js"></script>', ["//cdn.example/x.js"]),
            ('<link rel="stylesheet" href="http://fonts.example/f.css">', ["http://fonts.example/f.css"]),
            ('<img src="https://img.example/badge.svg" alt="">', ["https://img.example/badge.svg"]),
            ('<style>@import "https://a.example/b.css";</style>', ["https://a.example/b.css"]),
            ("<p style=\"background: url('https://a.example/b.png')\">", ["https://a.example/b.png"]),
            ('<a href="https://huggingface.co/learn">the course</a>', []),
            ('<link rel="canonical" href="https://zoo.example/">', []),
            ('<script src="_static/togglebutton.js"></script><p>src="https://x.example"</p>', []),
        ],
    )
    def test_finds_what_a_browser_would_fetch_unasked(self, tmp_path: Path, html: str, found: list[str]) -> None:
        (tmp_path / "rules").mkdir()
        (tmp_path / "rules" / "page.html").write_text(html)
        assert fetched_from_elsewhere(tmp_path) == [f"rules/page.html: {address}" for address in found]

    def test_reads_the_styles_too(self, tmp_path: Path) -> None:
        (tmp_path / "zoo.css").write_text('@font-face { src: url("https://fonts.example/f.woff2"); }')
        assert fetched_from_elsewhere(tmp_path) == ["zoo.css: https://fonts.example/f.woff2"]


class TestFiguresWithoutWords:
    @pytest.mark.parametrize(
        ("html", "found"),
        [
            ('<img src="_images/a1.png" alt="The loss falls.">', []),
            ('<img src="_images/a1.png" alt="../_images/a1.png">', ["_images/a1.png"]),
            ('<img src="_images/a1.svg" alt=" ">', ["_images/a1.svg"]),
            ('<img src="_images/a1.svg">', ["_images/a1.svg"]),
            ('<svg role="img" aria-label="Two ranks wait."><path/></svg>', []),
            ('<svg aria-hidden="true"></svg>', []),
            ("<p>\n<svg></svg></p>", ["a drawing in line 2"]),
            ("<p>An img and a svg.</p>", []),
        ],
    )
    def test_finds_images_and_drawings(self, tmp_path: Path, html: str, found: list[str]) -> None:
        for folder in ("exhibits", "_static"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "page.html").write_text(html)
        assert figures_without_words(tmp_path) == [f"exhibits/page.html: {figure}" for figure in found]


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

    def test_a_figure_without_words_is_a_failure(self, tmp_path: Path) -> None:
        source = tmp_path / "_build" / "source"
        source.mkdir(parents=True)
        (source / "_config.yml").write_text("title: Small\nexecute: {execute_notebooks: 'off'}\n")
        (source / "_toc.yml").write_text("format: jb-book\nroot: index\n")
        (source / "curve.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
        (source / "index.md").write_text("# Small\n\n![](curve.svg)\n")
        with pytest.raises(RenderingFailed, match="Every figure needs words"):
            render(source, tmp_path, ROOT / "constraints.txt")

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
