"""Facts about failures before or around the training: versions, files of checkpoints, settings, examples."""

from __future__ import annotations

from typing import Literal

from diagnostics.facts.frozen import frozen


@frozen
class ReleaseChange:
    """A release in which a call stopped or began to take an argument, or a class or module lost a name.

    Attributes:
        package: as pip names it.
        call: class, or class and method: ``Trainer``, ``Trainer.fit``; of an attribute, its class or package.
        version: the release with the change; at the latest, since not every release was read.
        before: the release read before, without the change.
        instead: what replaces it; None if nothing does, or it is not known.
        is_attribute: whether `name` is an attribute or a module within `call`, not an argument.
    """

    package: str
    call: str
    name: str
    kind: Literal["removed", "added"]
    version: str
    before: str
    instead: str | None = None
    is_attribute: bool = False


@frozen
class VersionsDiffer:
    """A library was asked for a name that its installed version does not have.

    Attributes:
        owner: the class or module that lacks it: ``numpy``, ``Accelerator``; empty if unknown.
        name: the attribute, argument or import that it lacks; empty if only the version was told.
        kind: what `name` is.
        caller: the installed package that asked for it; None if it was the user's own code, or is unknown.
        change: the release that removed or introduced it, where that is known.
    """

    owner: str
    name: str
    kind: Literal["attribute", "argument", "import"]
    caller: str | None = None
    change: ReleaseChange | None = None


@frozen
class StateOfOtherBatch:
    """A recurrent layer was given a hidden state of another size than its input asks for.

    Attributes:
        wanted: shape that belongs to the input: layers, batch, units.
        got: shape of the state that was passed.
    """

    wanted: tuple[int, ...]
    got: tuple[int, ...]


@frozen
class PositionsDiffer:
    """A table of positions was added to an input of another length.

    Attributes:
        length: of the input.
        rows: of the table.
    """

    length: int
    rows: int


SetupSymptom = VersionsDiffer | StateOfOtherBatch | PositionsDiffer
