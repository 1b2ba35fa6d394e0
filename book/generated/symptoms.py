"""The page that leads from what a reader sees to the rules that may name the cause, and to the exhibits."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from book.builder.outline import shown
from book.generated.pages import seen
from book.generated.thumbnails import Curve, thumbnail
from bugs.keeper.catalogue import ExceptionSignature, Exhibit
from diagnostics.engine.rule import Rule

FILE = Path(__file__).parents[1] / "symptoms.toml"
OPENING = """\
# From symptom to cause

Start with the first question to which your answer is yes.

"""


@dataclass(frozen=True)
class Symptom:
    """What a reader may see.

    Attributes:
        title: of its section.
        ask: the question by which it is chosen.
        look: where to look first, as Markdown.
        rules: names of the rules that may name the cause, the most frequent first.
    """

    title: str
    ask: str
    look: str
    rules: tuple[str, ...]


def load(file: Path = FILE) -> tuple[Symptom, ...]:
    """Read the symptoms, in the order of the page."""
    entries = tomllib.loads(file.read_text("utf-8"))["symptoms"]
    return tuple(Symptom(**{**entry, "rules": tuple(entry["rules"])}) for entry in entries)


def symptoms_page(
    symptoms: Sequence[Symptom],
    exhibits: Sequence[Exhibit],
    rules: Sequence[Rule],
    curves: Mapping[str, Curve] = MappingProxyType({}),
) -> str:
    """Return the page: questions to choose by, and for each symptom its rules and the exhibits that show it.

    Args:
        symptoms: in the order of the page.
        exhibits: each stands under one of them.
        rules: all that the symptoms name.
        curves: of broken runs, by the id of the exhibit.

    Raises:
        KeyError: a symptom names a rule that there is not.
    """
    summaries = {rule.name: rule.summary() for rule in rules}
    home = {exhibit.id: _home(exhibit, symptoms) for exhibit in exhibits}
    lines = [f"{place}. {one.ask} → [{one.title}](#{_anchor(one)})" for place, one in enumerate(symptoms, 1)]
    for symptom in symptoms:
        lines += ["", f"({_anchor(symptom)})=", f"## {symptom.title}", "", symptom.look, ""]
        lines += [f"- [{name}](rules/{name}.md): {summaries[name]}" for name in symptom.rules]
        for exhibit in exhibits:
            if home[exhibit.id] is symptom:
                lines += ["", *_entry(exhibit, curves.get(exhibit.id))]
    return OPENING + "\n".join(lines) + "\n"


def _home(exhibit: Exhibit, symptoms: Sequence[Symptom]) -> Symptom:
    """Choose the section of an exhibit: an exception's is the first, but for memory and several ranks."""
    if exhibit.symptom == "throws" and exhibit.stage != "distributed":
        return symptoms[0]
    candidates = (one for rule in exhibit.rules for one in symptoms[1:] if rule in one.rules)
    return next(candidates, symptoms[0])


def _anchor(symptom: Symptom) -> str:
    return "symptom-" + "-".join(symptom.title.lower().replace(",", "").split())


def _entry(exhibit: Exhibit, curve: Curve | None) -> Iterator[str]:
    yield from (f"### {seen(exhibit)}", "")
    if curve is not None:
        yield from ("```{raw} html", thumbnail(curve), "```", "")
    if isinstance(exhibit.signature, ExceptionSignature):
        path, function = exhibit.signature.surface_path, exhibit.signature.surface_function
        anywhere = "wherever the last free memory is requested"
        yield f"- **Surfaces** {anywhere if '*' in path else f'in `{function}` of `{path}`'}"
    yield f"- **Exhibit** [{shown(exhibit)}]({exhibit.page}.ipynb)"
    yield f"- **Rule** {', '.join(f'[{rule}](rules/{rule}.md)' for rule in exhibit.rules)}"
