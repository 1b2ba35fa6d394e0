"""What a script says and nothing does: in its source, or by attributes that nothing reads. No framework."""

from __future__ import annotations

from typing import ClassVar, Literal

from diagnostics.facts.frozen import frozen

from .where import Where

Holder = Literal["module", "parameter", "optimizer", "subset", "loader", "traced"]


@frozen
class WrittenPattern:
    """A pattern in the source that is a bug, or part of one.

    Attributes:
        kind: the module of `diagnostics.collectors.source.patterns` that finds it: ``kept_models``.
        names: what is involved, as it is written, in the order that this module states.
        where: the line.
        column: of the statement or expression, from 1.
        by_name: whether the source alone does not show that it is a bug, for instance because only the names of
            variables say so; then it is at most a note, or needs a measurement.
    """

    kind: str
    names: tuple[str, ...]
    where: Where
    column: int = 1
    by_name: bool = False

    @property
    def severity(self) -> Literal["note"] | None:
        """The severity of a finding; None for that of the rule."""
        return "note" if self.by_name else None


@frozen
class ComparedPairs:
    """A comparison of arrays of shape (n,) and (n, 1), which compares each number with every other.

    Attributes:
        names: the two sides, as they are written.
        shapes: of the arrays that the script held at its end.
        of_pairs: the share of the n x n pairs that are equal.
        of_rows: the share of the n rows whose two numbers are equal.
        kinds: different numbers on the side that has fewer.
        where: the line.
    """

    names: tuple[str, str]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    of_pairs: float
    of_rows: float
    kinds: int
    where: Where


@frozen
class ReshapedArray:
    """An array with the numbers of another one in the same order, in whose shape two axes have changed places.

    Attributes:
        names: of the two, as the script held them at its end; the later one is the second.
        shapes: theirs; the first axis is the same.
        where: the line that made the second.
    """

    names: tuple[str, str]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    where: Where


@frozen
class WrittenPatterns:
    """What was found in the source of the script and of the modules beside it that it has imported.

    Attributes:
        patterns: of all kinds.
        pairs: comparisons in the script whose results are all counted, with what they compared.
        reshaped: arrays that the script held at its end.
    """

    described: ClassVar[str] = "the source of the script"

    patterns: tuple[WrittenPattern, ...] = ()
    pairs: tuple[ComparedPairs, ...] = ()
    reshaped: tuple[ReshapedArray, ...] = ()

    def of(self, kind: str) -> tuple[WrittenPattern, ...]:
        """Return those of one kind."""
        return tuple(one for one in self.patterns if one.kind == kind)

    def first(self, kind: str) -> WrittenPattern | None:
        """Return the first of one kind, rather one that does not rest on names; None if there is none."""
        return min(self.of(kind), key=lambda one: one.by_name, default=None)


@frozen
class IdleSetting:
    """One such attribute, where what it was to change is known to have stayed.

    Attributes:
        holder: what it was set on; ``traced``: an object of Keras whose number was read in a trace, before that.
        kind: the class of that: ``Linear``.
        name: of the attribute: ``requires_grad``.
        value: what it was set to, as Python writes it.
        paths: of the modules or parameters, within the model; empty for the others.
        instead: of an optimizer, the rates that it used; of a subset, the value that its data set has; of a traced
            number, the value that it had then.
        steps_on: the class of the optimizer that stepped on the parameters all the same; of a traced number, the
            steps that used it after the change; empty for the others.
    """

    holder: Holder
    kind: str
    name: str
    value: str
    paths: tuple[str, ...] = ()
    instead: str = ""
    steps_on: str = ""


@frozen
class SettingFacts:
    """The attributes without effect that were found on a model, its optimizers, or its training data.

    Attributes:
        idle: each with its holder.
    """

    described: ClassVar[str] = "attributes set on modules, optimizers and loaders"

    idle: tuple[IdleSetting, ...]
