"""The result of `baselines`: what simple predictions score, and what a model must beat."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from diagnostics.facts.data import Baseline, BaselineFacts
from diagnostics.text.join import count_of
from diagnostics.text.visible import escaped, visible


@dataclass(frozen=True, repr=False)
class Baselines:
    """What `diagnostics.baselines` found.

    Attributes:
        facts: the scores, and on which rows.
        model_score: the model's own score, as it was given; None if it was not.
        seconds: that all took.
        budget: the seconds that were given.
    """

    facts: BaselineFacts
    model_score: float | None
    seconds: float
    budget: float

    @property
    def best(self) -> Baseline:
        """The baseline with the best score: what the model must beat."""
        known = [one for one in self.facts.baselines if one.score is not None]
        sign = 1 if self.facts.higher_is_better else -1
        return max(known, key=lambda one: sign * (one.score or 0.0))

    @property
    def must_beat(self) -> float:
        """The score of the best baseline."""
        return float(self.best.score or 0.0)

    @property
    def beaten(self) -> bool | None:
        """Whether the model is better than all of them; None without its score, or if the rows are too few."""
        if self.model_score is None:
            return None
        gained = (self.model_score - self.must_beat) * (1 if self.facts.higher_is_better else -1)
        margin = self.best.margin or 0.0
        return None if 0 < gained <= margin else gained > 0

    def as_dict(self) -> dict[str, Any]:
        """Return all as plain values."""
        said = {"must_beat": self.must_beat, "best": self.best.name, "model_score": self.model_score}
        return {**said, "beaten": self.beaten, "seconds": round(self.seconds, 3), **asdict(self.facts)}

    def to_json(self, indent: int | None = 2) -> str:
        """Return all as a JSON object."""
        return json.dumps(self.as_dict(), indent=indent)

    def to_html(self) -> str:
        """Return a table with the scores, and the sentences below it; it needs no style of a page."""
        rows = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td>{score}</td><td "
            f"style='text-align:left'>{escaped(said)}</td></tr>"
            for name, score, said in self._rows()
        )
        words = "".join(f"<p>{escaped(sentence)}</p>" for sentence in self._sentences())
        return f"<div><b>{escaped(self._title())}</b><table><tbody>{rows}</tbody></table>{words}</div>"

    _repr_html_ = to_html

    def __str__(self) -> str:
        rows = [f"  {name:9} {score:>10}  {said}" for name, score, said in self._rows()]
        return visible("\n".join([self._title(), *rows, "", *self._sentences()]))

    __repr__ = __str__

    def _title(self) -> str:
        facts = self.facts
        kind = facts.task if facts.classes is None else f"{count_of(facts.classes, 'class', 'classes')}"
        better = "higher" if facts.higher_is_better else "lower"
        held = "held out" if facts.held_out else "of the evaluation data"
        return (
            f"baselines, {kind}: {facts.metric.replace('_', ' ')}, {better} is better; "
            f"{count_of(facts.fitted_rows, 'row')} to fit, {facts.scored_rows:,} {held} to score"
        )

    def _rows(self) -> list[tuple[str, str, str]]:
        rows: list[tuple[str, str, str]] = []
        for one in self.facts.baselines:
            rows.append((one.name, "-" if one.score is None else f"{one.score:.4g}", one.detail))
        if self.model_score is not None:
            rows.append(("the model", f"{self.model_score:.4g}", "as given"))
        return rows

    def _sentences(self) -> list[str]:
        best, facts = self.best, self.facts
        within = "" if best.margin is None else f", which {facts.scored_rows:,} rows tell to ±{best.margin:.2g}"
        said = [f"The model must beat {self.must_beat:.4g} ({best.name}{within}), scored on the same rows."]
        if self.model_score is not None:
            said.append(self._verdict())
        said += [f"Note: {note}." for note in facts.notes]
        return [*said, f"{self.seconds:.1f} s of the {self.budget:g} s given."]

    def _verdict(self) -> str:
        if self.beaten:
            return f"It does: {self.model_score:.4g}."
        if self.beaten is None:
            return (
                f"Its {self.model_score:.4g} is ahead by less than so few rows can tell: score both on more "
                "of them, or train with several seeds."
            )
        if self.model_score == self.must_beat:
            return f"It is as good as the {self.best.name} prediction, and no better: {self.model_score:.4g}."
        return (
            f"It does not: {self.model_score:.4g}. Before tuning anything, find out why: overfit it on a few "
            "examples (diagnostics.overfit), and look at the data where it enters the model."
        )
