"""The page that leads from what a reader sees to the likely causes, and to the check that decides between them."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from book.builder.outline import Chapter, shown
from book.generated.curves import Curve, drawing
from bugs.zoo.keeper.catalogue import Exhibit
from diagnostics.engine.rule import Rule

FILE = Path(__file__).parents[1] / "symptoms.toml"
MOST_CANDIDATES = 5
OPENING = """\
# From symptom to cause

Find what you see, then run the one check that tells the causes apart.

"""
SHAPES = """
Otherwise, plot the loss by step, and click the curve that looks like yours. All nine come from runs of this book.
The dotted line is what a constant prediction would score.

"""
CHECKS = """
The checks are written for PyTorch. `model`, `loss_fn`, `optimizer`, `dataset`, `loader` and `evaluate` stand for
your own; `inputs, labels` is one batch of the loader. `diagnose run train.py` makes most of the checks for you, in
PyTorch and in Keras.
"""


class SymptomError(ValueError):
    """The file of symptoms cannot be used; `str()` says what is wrong with it."""


@dataclass(frozen=True)
class Candidate:
    """What may be the cause.

    Attributes:
        cause: in a reader's words.
        check: Python code, or a command that begins with "$ ".
        decides: what the result of the check has to be, to follow "It is this if".
        rule: the rule that detects it.
        chapter: number of the chapter that teaches it.
        exhibit: id of an exhibit that shows it; empty if there is none.
    """

    cause: str
    check: str
    decides: str
    rule: str
    chapter: int
    exhibit: str = ""


@dataclass(frozen=True)
class Shape:
    """A curve that a reader may see.

    Attributes:
        id: of its section.
        title: what the curve does.
        look: what this tells, as Markdown.
        curve: name of the notebook that notes it.
        candidates: the most frequent first.
    """

    id: str
    title: str
    look: str
    curve: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True)
class LastLine:
    """The last line of a traceback.

    Attributes:
        line: as Python prints it.
        cause: in a reader's words.
        rule: the rule that `explain` names for this line.
        exhibit: id of an exhibit that ends with such a line; empty if there is none.
    """

    line: str
    cause: str
    rule: str
    exhibit: str = ""

    @property
    def exception(self) -> str:
        """The type of the exception."""
        return self.line.partition(":")[0]


@dataclass(frozen=True)
class Symptom:
    """What a reader may see.

    Attributes:
        title: of its section.
        ask: the question by which it is chosen.
        look: where to look first, as Markdown.
        rules: names of all rules that may name the cause, the most frequent first.
        shapes: its curves, if it shows in a curve.
        candidates: the most frequent first, if it does not.
        lines: last lines of tracebacks, if it is an exception.
    """

    title: str
    ask: str
    look: str
    rules: tuple[str, ...]
    shapes: tuple[Shape, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    lines: tuple[LastLine, ...] = ()

    @property
    def anchor(self) -> str:
        """The id of its section."""
        return "symptom-" + "-".join(self.title.lower().replace(",", "").split())


def load(file: Path = FILE) -> tuple[Symptom, ...]:
    """Read the symptoms, in the order of the page.

    Raises:
        SymptomError: a shape or a symptom has too many candidates.
    """
    return tuple(_symptom(entry) for entry in tomllib.loads(file.read_text("utf-8"))["symptoms"])


def _symptom(entry: Mapping[str, Any]) -> Symptom:
    shapes = tuple(
        Shape(**{**shape, "candidates": _candidates(shape, shape["title"])}) for shape in entry.get("shapes", ())
    )
    lines = tuple(LastLine(**line) for line in entry.get("lines", ()))
    candidates = _candidates(entry, entry["title"])
    made = {"rules": tuple(entry["rules"]), "shapes": shapes, "candidates": candidates, "lines": lines}
    return Symptom(**{**entry, **made})


def _candidates(entry: Mapping[str, Any], title: str) -> tuple[Candidate, ...]:
    found = tuple(Candidate(**candidate) for candidate in entry.get("candidates", ()))
    if len(found) > MOST_CANDIDATES:
        raise SymptomError(f"symptoms.toml: {title!r} has {len(found)} candidates, more than {MOST_CANDIDATES}")
    return found


def curves_of(symptoms: Iterable[Symptom], noted: Mapping[str, Iterable[Curve]]) -> dict[str, Curve]:
    """Return the curve of each shape, by its id.

    Args:
        symptoms: whose shapes.
        noted: the curves that each notebook has noted, by its name.

    Raises:
        SymptomError: the notebook of a shape has noted no curve for it.
    """
    found = {}
    for shape in (shape for symptom in symptoms for shape in symptom.shapes):
        fitting = [curve for curve in noted.get(shape.curve, ()) if curve.shape in ("", shape.id)]
        if len(fitting) != 1:
            raise SymptomError(f"{shape.curve} has noted {len(fitting)} curves for the shape {shape.id!r}, not 1")
        found[shape.id] = fitting[0]
    return found


@dataclass(frozen=True)
class Links:
    """Links to the other pages of the book.

    Attributes:
        exhibits: all.
        chapters: all.
        rules: all.
    """

    exhibits: Sequence[Exhibit]
    chapters: Sequence[Chapter]
    rules: Sequence[Rule]

    def rule(self, name: str) -> str:
        """Link a rule.

        Raises:
            KeyError: there is no such rule.
        """
        if name not in {rule.name for rule in self.rules}:
            raise KeyError(name)
        return f"[{name}](rules/{name}.md)"

    def exhibit(self, number: str) -> str:
        """Link an exhibit; raise `KeyError` if there is none of this id."""
        exhibit = {one.id: one for one in self.exhibits}[number]
        return f"[{shown(exhibit)}]({exhibit.page}.ipynb)"

    def chapter(self, number: int) -> str:
        """Link a chapter; raise `KeyError` if there is none of this number."""
        chapter = {one.number: one for one in self.chapters}[number]
        return f"[chapter {chapter.number}]({chapter.file})"

    def notebook(self, name: str) -> str:
        """Link the exhibit, chapter or mystery whose notebook has this name; raise `KeyError` if there is none."""
        known = {one.folder: self.exhibit(one.id) for one in self.exhibits}
        known |= {one.name: self.chapter(one.number) for one in self.chapters}
        known |= {
            one.mystery: f"[mystery {one.number}](mysteries/{one.mystery}.ipynb)"
            for one in self.chapters
            if one.mystery
        }
        return known[name]


def symptoms_page(symptoms: Sequence[Symptom], links: Links, curves: Mapping[str, Curve]) -> str:
    """Return the page: questions and curves to choose by, and for each the candidates; all rules are folded.

    Args:
        symptoms: in the order of the page.
        links: to other pages.
        curves: by the id of the shape.

    Raises:
        KeyError: a symptom names a rule, an exhibit or a chapter that does not exist.
    """
    others = [f"- {one.ask} → [{one.title}](#{one.anchor})" for one in symptoms if not one.shapes]
    shapes = [shape for symptom in symptoms for shape in symptom.shapes]
    cards = (
        f'<a class="shape" href="#{shape.id}">{drawing(curves[shape.id])}<span>{shape.title}</span></a>'
        for shape in shapes
    )
    grid = ["```{raw} html", '<div class="shapes">', *cards, "</div>", "```", ""]
    lines = ["\n".join(others), SHAPES, "\n".join(grid), CHECKS]
    for symptom in symptoms:
        lines += ["", f"({symptom.anchor})=", f"## {symptom.title}", "", symptom.look, ""]
        lines += _by_exception(symptom.lines, links)
        lines += _listed(symptom.candidates, links)
        for shape in symptom.shapes:
            lines += [f"({shape.id})=", f"### {shape.title}", "", shape.look, ""]
            lines += [f"*The curve, from {links.notebook(shape.curve)}: {curves[shape.id].described}*", ""]
            lines += _listed(shape.candidates, links)
        summaries = {rule.name: rule.summary() for rule in links.rules}
        lines += [f":::{{dropdown}} All {len(symptom.rules)} rules that may name the cause", ""]
        lines += [f"- {links.rule(name)}: {summaries[name]}" for name in symptom.rules]
        lines += [":::", ""]
    return OPENING + "\n".join(lines) + "\n"


def _by_exception(found: Iterable[LastLine], links: Links) -> Iterator[str]:
    """List last lines by the type of the exception, then by their words."""
    ordered = sorted(found, key=lambda one: one.line.lower())
    for exception, lines in itertools.groupby(ordered, key=lambda one: one.exception):
        yield from (f":::{{dropdown}} {exception}", "")
        for one in lines:
            words = one.line.removeprefix(f"{exception}: ")
            see = [links.rule(one.rule), *([links.exhibit(one.exhibit)] if one.exhibit else [])]
            yield f"- `{words}`\\\n  {one.cause} → {' · '.join(see)}"
        yield from (":::", "")


def _listed(candidates: Iterable[Candidate], links: Links) -> Iterator[str]:
    for number, one in enumerate(candidates, 1):
        command = one.check.startswith("$ ")
        see = [links.rule(one.rule), *([links.exhibit(one.exhibit)] if one.exhibit else [])]
        body = [
            f"**{one.cause}**",
            "",
            f"```{'bash' if command else 'python'}",
            *one.check.removeprefix("$ ").strip("\n").splitlines(),
            "```",
            "",
            f"It is this if {one.decides}. → {' · '.join([*see, links.chapter(one.chapter)])}",
        ]
        margin = f"{number}. "
        yield from (f"{margin if not place else '   '}{line}".rstrip() for place, line in enumerate(body))
        yield ""
