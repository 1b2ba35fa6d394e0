"""A notebook that opens in Colab installs the zoo first; while the zoo is published nowhere no page offers it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from nbformat import v4

from book.builder.chapter_pages import exhibit_notebook
from book.builder.colab import Published, install_cell, published
from book.builder.outline import homes, load
from bugs.zoo.keeper.catalogue import load_catalogue

ROOT = Path(__file__).parents[4]
EXHIBITS = load_catalogue(ROOT)
EXHIBIT = EXHIBITS["04"]
CHAPTER = homes(load(ROOT / "book" / "chapters"), list(EXHIBITS.values()))["04"]
WHERE = Published("ada/bug-zoo", "gh-pages")


def page(where: Published | None) -> list:
    cells = [v4.new_markdown_cell("# A title\n\nIts first words."), v4.new_code_cell("import bugs")]
    return exhibit_notebook(v4.new_notebook(cells=cells), EXHIBIT, CHAPTER, None, None, where).cells


def test_the_page_links_the_notebook_and_its_first_code_cell_installs_the_zoo() -> None:
    title, first, *_ = page(WHERE)
    notebook = "ada/bug-zoo/blob/gh-pages/_sources/exhibits/04_wrong_label_count.ipynb"
    assert f"[Open it in Colab](https://colab.research.google.com/github/{notebook})." in title.source
    assert "https://github.com/ada/bug-zoo.git" in first.source
    assert first.metadata.tags == ["remove-cell"]


def test_a_zoo_that_is_published_nowhere_offers_no_colab(tmp_path: Path) -> None:
    title, first, *_ = page(None)
    assert "Colab" not in title.source
    assert first.source == "import bugs"
    (tmp_path / "published.toml").write_text('repository = ""\nsite = "gh-pages"\n')
    assert published(tmp_path) is None
    (tmp_path / "published.toml").write_text('repository = "ada/bug-zoo"\nsite = "gh-pages"\n')
    assert published(tmp_path) == WHERE


def test_the_cell_clones_the_zoo_where_it_is_missing_and_scripts_find_it_then(tmp_path: Path) -> None:
    (tmp_path / "zoo" / "bugs").mkdir(parents=True)
    (tmp_path / "zoo" / "bugs" / "__init__.py").write_text("")
    git = ["git", "-C", str(tmp_path / "zoo"), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Keep a bug"]):
        subprocess.run([*git, *command], check=True)
    cell = install_cell(WHERE).source.replace(WHERE.address, (tmp_path / "zoo").as_uri())
    cell = cell.replace('"-m", "pip"', '"-c", "import sys; print(sys.argv[1:])"')  # what it would install
    ends = "import bugs\nsubprocess.run([sys.executable, '-c', 'import bugs; print(bugs.__file__)'], check=True)\n"
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # -S: without site-packages, where the zoo is installed.
    done = subprocess.run(
        [sys.executable, "-S", "-c", cell + ends], cwd=tmp_path, env=plain, capture_output=True, text=True
    )
    assert done.stderr == ""
    installed, found = done.stdout.splitlines()
    assert installed == "['install', '--quiet', './bug-zoo[zoo]', 'matplotlib']"
    assert found == str(tmp_path / "bug-zoo" / "bugs" / "__init__.py")
