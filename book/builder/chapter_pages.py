"""What the build adds to notebooks: a chapter's head, folded answers, its mystery; an exhibit's place.

Also the pages and cards that are made from the order of the chapters alone.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from nbformat import NotebookNode, v4

from book.builder.colab import Published, install_cell
from book.builder.outline import Chapter, numbers, shown
from book.generated.pages import FRAMEWORKS, SYMPTOMS, seen
from book.generated.pipeline_map import pipeline_map
from bugs.zoo.keeper.catalogue import Exhibit
from bugs.zoo.learner.exercises import ANSWER, MAP

FOLDED = (  # tag, what is hidden, and the words to unfold it
    (ANSWER, "hide-cell", "the answer"),
    ("predict", "hide-output", "the output"),
)
POINTS = {"exercise": 2, "mystery": 3, "exhibit": 5}  # in a course; the page In class says what for
STUDENTS, TEACHERS = "_sources", "teacher"  # folders of the site; Sphinx puts the source of a page into the first
LONG = 40  # lines of an output, above which it is folded: a report of three findings still stands open
# The chapter that is about each station, for the links of the map.
CHAPTER_OF = {"dataset": 4, "batch": 5, "forward": 6, "loss": 6, "backward": 8, "step": 9, "evaluation": 11}
MYSTERIES = Path(__file__).parents[1] / "mysteries"
_WITHOUT_THE_TOOL_FIRST = (
    "1. **Look, without the tool.** Run the script and read it. Write down what you would check with your own "
    "eyes and the tools of the chapter. Check it, and write down your verdict: the cause, in one sentence.",
    "2. **Ask the tool.** Run the script under `diagnose run`. Its report may agree with you, find nothing, or "
    "find something that is not the cause. Keep your verdict or change it.",
    "3. **Fix the script**, check your fix, and open the solution.",
)


def set_title(page: NotebookNode, title: str) -> None:
    """Set the title of a page in place: the build numbers chapters and exhibits."""
    rest = page.cells[0].source.partition("\n")[2]
    page.cells[0].source = f"# {title}\n{rest}"


def chapter_notebook(
    notebook: NotebookNode, chapter: Chapter, chapters: Sequence[Chapter], exhibits: Iterable[Exhibit]
) -> NotebookNode:
    """Return the executed notebook of a chapter as its page: head, folded answers, exhibits, mystery."""
    page = copy.deepcopy(notebook)
    page.metadata.pop("chapter", None)
    for cell in page.cells:
        for tag, hidden, prompt in FOLDED:
            if tag in cell.metadata.get("tags", []):
                _fold(cell, hidden, prompt)
    _fold_long_outputs(page)
    _name_setup(page)
    title, _, rest = page.cells[0].source.partition("\n")
    head = [
        _markdown("chapter-title", title),
        _html(MAP, pipeline_map(chapter.stations, station_links(chapters, ""))),
        _markdown("chapter-facts", "\n".join(_facts(chapter, chapters))),
        _markdown("chapter-opening", rest.strip()),
    ]
    page.cells[:1] = [cell for cell in head if cell.source]
    by_id = {exhibit.id: exhibit for exhibit in exhibits}
    if chapter.cages or chapter.also:
        page.cells.append(_markdown("chapter-cages", "\n".join(_cages(chapter, by_id))))
    if chapter.mystery:
        page.cells.append(_markdown("chapter-mystery", "\n".join(_mystery(chapter))))
    return page


def exhibit_notebook(
    notebook: NotebookNode,
    exhibit: Exhibit,
    chapter: Chapter,
    before: Exhibit | None,
    after: Exhibit | None,
    where: Published | None = None,
) -> NotebookNode:
    """Return the executed notebook of an exhibit as its page: with its chapter, neighbours, rules and sources.

    Args:
        notebook: as it was executed.
        exhibit: whose it is.
        chapter: that it belongs to.
        before: the one in front of it in the order of the book.
        after: the one behind it.
        where: the zoo is published, so that Colab can open the notebook; None if nowhere.
    """
    page = copy.deepcopy(notebook)
    _fold_long_outputs(page)
    _name_setup(page)
    title, _, rest = page.cells[0].source.partition("\n")
    follows = f" Follows {_cage_link(before)}." if before else ""
    number = f"Exhibit {numbers()[exhibit.id]}, `nox -s bug-{exhibit.id}`"
    place = f"{number} · [Chapter {chapter.number}, {chapter.title}](../{chapter.file}).{follows}"
    place += f" {students_link(exhibit.page)}."
    if where is not None:
        place += f" [Open it in Colab]({where.in_colab(exhibit)})."
        page.cells.insert(1, install_cell(where))
    page.cells[0].source = f"{title}\n\n:::{{div}} place\n{place}\n:::\n\n{rest.strip()}"
    # At the end: the name of a rule gives the cause away.
    listed = ", ".join(f"[{_name(source)}]({source})" for source in exhibit.sources)
    links = [
        f"**Rules** that detect it: {', '.join(f'[{rule}](../rules/{rule}.md)' for rule in exhibit.rules)}",
        f"**Sources** of this exhibit: {listed}",
        *([f"**Next**: {_cage_link(after)}"] if after else []),
    ]
    page.cells.append(_markdown("exhibit-links", "\n\n".join(links)))
    return page


def _fold_long_outputs(page: NotebookNode) -> None:
    for cell in page.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type != "code" or any(
            tag.startswith(("hide-", "remove-output", "remove-cell")) for tag in tags
        ):
            continue
        shown = [o for o in cell.outputs if not (o.get("name") == "stderr" and "remove-stderr" in tags)]
        texts = [output.get("text") or "\n".join(output.get("traceback", [])) for output in shown]
        lines = sum(len(text.splitlines()) for text in texts)
        if lines > LONG:
            _fold(cell, "hide-output", f"the output, {lines} lines")


def _name_setup(page: NotebookNode) -> None:
    """Label the first folded code of a page, which imports what the page needs."""
    for cell in page.cells:
        if "hide-input" in cell.metadata.get("tags", []):
            prompts = {"code_prompt_show": "Setup code", "code_prompt_hide": "Hide setup code"}
            cell.metadata["mystnb"] = {**prompts, **cell.metadata.get("mystnb", {})}
            return


def _fold(cell: NotebookNode, tag: str, what: str) -> None:
    """Have a cell, or its output, folded on the page: without a script, so that it unfolds without one, too."""
    cell.metadata["tags"] = [*cell.metadata.get("tags", []), tag]
    prompts = {"code_prompt_show": f"Show {what}", "code_prompt_hide": f"Hide {what}"}
    cell.metadata["mystnb"] = {**cell.metadata.get("mystnb", {}), **prompts}


def _cage_link(exhibit: Exhibit) -> str:
    return f"[{shown(exhibit)}]({exhibit.folder}.ipynb)"


def path_cards(chapters: Iterable[Chapter], exhibits: Iterable[Exhibit]) -> str:
    """Return the chapters in their order as cards, each with its exhibits, for the landing page."""
    by_id = {exhibit.id: exhibit for exhibit in exhibits}
    lines = ["::::{grid} 1 1 2 3", ":gutter: 3", ""]
    for chapter in chapters:
        cages = ", ".join(f"[{numbers()[cage]}]({by_id[cage].page}.ipynb)" for cage in chapter.cages)
        state = f"{chapter.minutes} minutes · {chapter.level}"
        if cages:
            state += f" · {'exhibits' if ',' in cages else 'exhibit'} {cages}"
        lines += [
            f":::{{grid-item-card}} [{chapter.shown}]({chapter.file})",
            "",
            f"{chapter.purpose}.",
            "",
            f"*{state}*",
            ":::",
            "",
        ]
    return "\n".join([*lines, "::::", ""])


def exhibits_index(in_order: Iterable[Exhibit]) -> str:
    """Return the page that shows the exhibits as cards, in the order of the book, in MyST."""
    lines = [
        "# All exhibits",
        "",
        "Each exhibit is a script that is broken in one way and fails the same way on every run, next to its "
        "fixed version. Its page shows the symptom first, so that you can guess. [How to read an "
        "exhibit](../guide/reading-an-exhibit.md) explains the parts.",
        "",
        "::::{grid} 1 1 2 3",
        ":gutter: 3",
        "",
    ]
    for exhibit in in_order:
        lines += [
            f":::{{grid-item-card}} {shown(exhibit)}",
            f":link: {exhibit.folder}",
            ":link-type: doc",
            "",
            seen(exhibit),
            "",
            f"*{FRAMEWORKS[exhibit.framework]}, {SYMPTOMS[exhibit.symptom]}*",
            "",
            f"`nox -s bug-{exhibit.id}`",
            ":::",
            "",
        ]
    return "\n".join([*lines, "::::", ""])


def hero_card(title: str, page: str, picture: str, words: str) -> str:
    """Return the card of a figure on the landing page, which leads to the page that it comes from, in MyST."""
    lines = [f":::{{grid-item-card}} {title}", f":link: {page}", ":link-type: doc", ":class-card: hero", ""]
    return "\n".join([*lines, f"```{{image}} {picture}", f":alt: {words}", "```", ":::", ""])


def units(chapters: Iterable[Chapter], exhibits: Iterable[Exhibit], exercises: Mapping[str, int]) -> str:
    """Return the units of a course, two for each chapter, as a table in MyST for a page beside the chapters.

    Args:
        chapters: in their order.
        exhibits: all that the chapters name.
        exercises: how many a chapter has, by its name.
    """
    by_id = {exhibit.id: exhibit for exhibit in exhibits}
    lines = [
        "| chapter | first 45 minutes | second 45 minutes | homework | points |",
        "|---|---|---|---|--:|",
    ]
    for chapter in chapters:
        count = exercises[chapter.name]
        mystery = ", then the mystery script" if chapter.mystery else ""
        home = ", ".join(f"[{shown(by_id[cage])}](../{by_id[cage].page}.ipynb)" for cage in chapter.cages)
        points = count * POINTS["exercise"] + bool(mystery) * POINTS["mystery"] + bool(home) * POINTS["exhibit"]
        lines.append(
            f"| [{chapter.shown}](../{chapter.file}) | the page, up to its exercises "
            f"| exercises 1 to {count}{mystery} | {home or 'none'} | {points} |"
        )
    return "\n".join([*lines, ""])


def mysteries_index(chapters: Iterable[Chapter]) -> str:
    """Return the page that leads to the solutions of the mystery scripts, in MyST."""
    lines = [
        "# Mystery scripts",
        "",
        "Most chapters end with a script that contains one bug, and the page does not tell you which. The scripts "
        "are in `book/mysteries/`. `nox -s learn -- try mystery-04` makes a copy in `attempts/mystery-04/` and "
        "prints the commands that run and check it; [Install](../guide/install.md) explains how to get "
        "`diagnose`. For each script:",
        "",
        *_WITHOUT_THE_TOOL_FIRST,
        "",
        "| chapter | script | first | then | last |",
        "|---|---|---|---|---|",
    ]
    for chapter in chapters:
        if chapter.mystery:
            plain, watched = mystery_commands(chapter.mystery)
            lines.append(
                f"| [{chapter.shown}](../{chapter.file}) | {{download}}`{chapter.mystery}.py` "
                f"| `{plain}` | `{watched}` | [solution]({chapter.mystery}.ipynb) |"
            )
    return "\n".join([*lines, ""])


def students_link(page: str) -> str:
    """Return the link to the student's copy of a page's notebook, which the download button offers, too."""
    return f'<a href="../{STUDENTS}/{page}.ipynb" download>Download the notebook</a>'


def teachers_links(chapters: Iterable[Chapter], exhibits: Iterable[Exhibit]) -> str:
    """Return the links to the teacher's copies, with answers and outputs, for the page In class."""
    links = [
        f'- Chapter {chapter.number}: <a href="../{TEACHERS}/{chapter.page}.ipynb" download>{chapter.title}</a>'
        for chapter in chapters
    ]
    of_exhibits = ", ".join(
        f'<a href="../{TEACHERS}/{exhibit.page}.ipynb" download>{exhibit.id}</a>' for exhibit in exhibits
    )
    return "\n".join([*links, f"- Exhibits: {of_exhibits}", ""])


def mystery_commands(mystery: str) -> tuple[str, str]:
    """Return the command in a mystery script's docstring, and the one that runs it under `diagnose run`."""
    file = f"{mystery}.py"
    docstring = (MYSTERIES / file).read_text("utf-8").split('"""')[1]
    plain = docstring.rpartition("$ ")[2].strip()
    launcher = plain.removesuffix(f" {file}")
    return plain, f"diagnose run {file}" if launcher == "python" else f"{launcher} -m diagnostics run {file}"


def station_links(chapters: Iterable[Chapter], folder: str) -> dict[str, str]:
    """Return the address of the page about each station, for a page from which `folder` leads to the chapters."""
    names = {chapter.number: chapter.name for chapter in chapters}
    return {s: f"{folder}{names[number]}.html" for s, number in CHAPTER_OF.items() if number in names}


def raw(text: str) -> str:
    """Return HTML as MyST that passes it on as it is."""
    return f"```{{raw}} html\n{text}\n```\n"


def _facts(chapter: Chapter, chapters: Sequence[Chapter]) -> list[str]:
    before = ", ".join(
        f"[{other.shown}]({other.file.removeprefix('chapters/')})"
        for other in chapters
        if other.number in chapter.before
    )
    return [
        ":::{div} facts",
        f"**You will learn to** {chapter.purpose[:1].lower()}{chapter.purpose[1:]}. "
        f"**Time** {chapter.minutes} minutes. **Level** {chapter.level}. **Prerequisites** {before or 'none'}. "
        f"{students_link(chapter.page)}, without answers and outputs, or work in the copy that "
        f"`nox -s learn -- try chapter-{chapter.number:02}` makes.",
        ":::",
    ]


def _cages(chapter: Chapter, by_id: Mapping[str, Exhibit]) -> list[str]:
    lines = ["## Exhibits", ""]
    if chapter.cages:
        lines += ["Complete bugs, each with its symptom, cause, fix and recovery:", ""]
        lines += _cage_list(chapter.cages, by_id)
    if chapter.also:
        also = ", ".join(f"[{shown(by_id[cage])}](../{by_id[cage].page}.ipynb)" for cage in chapter.also)
        lines += [f"{'See also' if chapter.cages else 'Related exhibits'}: {also}.", ""]
    return lines


def _cage_list(cages: Iterable[str], by_id: Mapping[str, Exhibit]) -> list[str]:
    items = [f"- [{shown(by_id[cage])}](../{by_id[cage].page}.ipynb): {seen(by_id[cage])}" for cage in cages]
    return [*items, ""] if items else []


def _mystery(chapter: Chapter) -> list[str]:
    script, number = f"../mysteries/{chapter.mystery}.py", chapter.mystery.removeprefix("mystery_")
    plain, watched = mystery_commands(chapter.mystery)
    return [
        "## Mystery script",
        "",
        f"{{download}}`{chapter.mystery}.py <{script}>` contains one bug, and this page does not tell you which. "
        f"`nox -s learn -- try mystery-{number}` gives you a copy in `attempts/mystery-{number}/`, and "
        f"`nox -s learn -- check mystery-{number}` checks your fix.",
        "",
        *_WITHOUT_THE_TOOL_FIRST,
        "",
        "In the folder of your copy:",
        "",
        "```console",
        f"$ {plain}",
        f"$ {watched}",
        "```",
        "",
        ":::{admonition} The script",
        ":class: dropdown",
        f"```{{literalinclude}} {script}",
        ":language: python",
        "```",
        ":::",
        "",
        f"When you have decided: [the solution](../mysteries/{chapter.mystery}.ipynb). "
        "[Install](../guide/install.md) explains how to get the commands.",
    ]


def _markdown(identity: str, text: str) -> NotebookNode:
    return v4.new_markdown_cell(text, id=identity)  # a random id would make every build look new


def _html(identity: str, text: str) -> NotebookNode:
    """Return a cell whose output is HTML, so that a downloaded notebook shows it, too."""
    output = v4.new_output("display_data", data={"text/html": text, "text/plain": ""})
    metadata = {"tags": ["remove-input"]}
    return v4.new_code_cell("# the map of the pipeline", id=identity, outputs=[output], metadata=metadata)


def _name(source: str) -> str:
    """Name a source by its address: "huggingface.co/learn/llm-course/chapter8/4"."""
    address = urlsplit(source)
    return (address.netloc + address.path).rstrip("/")
