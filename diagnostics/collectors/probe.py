"""Probes: each measures one thing of a training, and is discovered, as rules are.

A file in a folder of probes defines one; nothing else has to name it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, ClassVar, Concatenate, Generic, Literal, ParamSpec, TypeVar

When = Literal["first step", "sampled", "evaluation", "early", "end"]
Subject = TypeVar("Subject")
Arguments = ParamSpec("Arguments")


class Probe(Generic[Subject]):
    """Measures one thing.

    The base class of the probes of a folder declares their events: methods that are named ``on_…`` and do nothing.
    A probe replaces those that it is about.

    Args:
        subject: what is measured, and what else may be asked of it.

    Attributes:
        when: its facts are wanted.
        cost: of what it measures; cheap ones come first.
        part: its name in the report if it fails; that of its file unless it declares one.
    """

    when: ClassVar[When] = "end"
    cost: ClassVar[int] = 0
    part: ClassVar[str]

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def __init_subclass__(cls) -> None:
        """Name the part.

        Raises:
            TypeError: the probe waits for an event that its base class does not declare.
        """
        super().__init_subclass__()
        if Probe in cls.__bases__:
            return
        for name in vars(cls):
            if name.startswith("on_") and not any(hasattr(base, name) for base in cls.__bases__):
                raise TypeError(f"{cls.__name__} waits for {name}, which never happens")
        if "part" not in vars(cls):
            cls.part = cls.__module__.rpartition(".")[2].replace("_", " ")

    def facts(self) -> Iterable[Any]:
        """Return what was measured; None stands for a fact that is not known."""
        return ()


P = TypeVar("P", bound=Probe[Any])


def probes_in(folder: ModuleType, base: type[P]) -> list[type[P]]:
    """Return the probes of a kind in a package and the packages in it, by cost and place."""
    return [kind for kind in _all_in(folder) if issubclass(kind, base)]


@functools.cache
def _all_in(folder: ModuleType) -> list[type[Any]]:
    places = pkgutil.walk_packages(folder.__path__, f"{folder.__name__}.")
    modules = [importlib.import_module(place.name) for place in places if not place.ispkg]
    found = [
        member
        for module in modules
        for member in vars(module).values()
        if inspect.isclass(member) and issubclass(member, Probe) and member.__module__ == module.__name__
    ]
    return sorted(found, key=lambda kind: kind.cost)


class Probes(Generic[P]):
    """The probes of one subject.

    Args:
        folder: the package that they are in.
        base: their kind.
        subject: what they measure.
        run: does the work of a part, and never raises, as `FaultGuard.run`.
    """

    def __init__(self, folder: ModuleType, base: type[P], subject: Any, run: Callable[..., object]) -> None:
        self._run = run
        self._all = {kind: kind(subject) for kind in probes_in(folder, base)}
        self._waiting = {
            event: [(one.part, getattr(one, name)) for one in self._all.values() if _replaces(one, name, event)]
            for name, event in vars(base).items()
            if name.startswith("on_")
        }

    def __getitem__(self, kind: type[Any]) -> Any:
        """Return the probe of a class."""
        return self._all[kind]

    def tell(
        self,
        event: Callable[Concatenate[P, Arguments], object],
        /,
        *arguments: Arguments.args,
        **options: Arguments.kwargs,
    ) -> None:
        """Tell the probes of an event; it is the method of their base class that declares it."""
        for part, told in self._waiting[event]:
            self._run(part, told, *arguments, **options)

    def facts(self, *when: When) -> list[Any]:
        """Return the facts that are wanted at these times; those of a probe that fails are left out."""
        found: list[Any] = []
        for probe in self._all.values():
            if probe.when in when:
                self._run(probe.part, lambda probe=probe: found.extend(probe.facts()))
        return [fact for fact in found if fact is not None]


def _replaces(probe: Probe[Any], name: str, event: Any) -> bool:
    return getattr(type(probe), name) is not event
