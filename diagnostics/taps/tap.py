"""Patches a function of a framework while somebody wants to know of its calls."""

from __future__ import annotations

import functools
import importlib
import inspect
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.isolation.patching import Patches
from diagnostics.collectors.isolation.recording import is_recorded

Unsubscribe = Callable[[], None]

_lock = threading.RLock()


class Event:
    """Something that a script does.

    Nobody is told of what this library does itself. What a compiler or tracer records is left out by the source.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._subscribers: tuple[Callable[..., object], ...] = ()

    def __bool__(self) -> bool:
        """Whether there is a subscriber."""
        return bool(self._subscribers)

    def subscribe(self, work: Callable[..., object]) -> Unsubscribe:
        """Call `work` at each event, after those who subscribed before. What it raises reaches the script.

        Returns:
            A function that ends the subscription. It may be called again, and does nothing then.
        """
        told = functools.partial(work)  # one of its own for each subscription
        self._source.prepare()

        def unsubscribe() -> None:
            with _lock:
                self._subscribers = tuple(one for one in self._subscribers if one is not told)
                self._source.update()

        with _lock:
            self._subscribers = (*self._subscribers, told)
            self._source.update()
        return unsubscribe

    def tell(self, /, *arguments: Any, **options: Any) -> None:
        """Tell the subscribers, in the order of their subscriptions."""
        if self._subscribers and not is_own_run():
            for told in self._subscribers:
                told(*arguments, **options)

    def exchange(self, value: Any, /, *arguments: Any) -> Any:
        """Return a value as the subscribers exchange it, one after the other; they are given it last."""
        if self._subscribers and not is_own_run():
            for told in self._subscribers:
                value = told(*arguments, value)
        return value


def subscribe(run: Callable[..., object] | None, *pairs: tuple[Event, Callable[..., object]]) -> Unsubscribe:
    """Subscribe to several events.

    Args:
        run: called with what is to be done at an event, and with what its subscribers are given; None to call
            that itself.
        pairs: events, and what is to be done at each.

    Returns:
        A function that ends all subscriptions.
    """
    ends = [event.subscribe(work if run is None else functools.partial(run, work)) for event, work in pairs]

    def unsubscribe() -> None:
        for end in ends:
            end()

    return unsubscribe


class Source:
    """A place in a framework, which is touched while one of its events has a subscriber.

    Attributes:
        before: the event before it runs.
        after: the event after it has run, unless it raised.
    """

    def __init__(self) -> None:
        self.before, self.after = Event(self), Event(self)
        self._is_attached = False

    def update(self) -> None:
        """Touch the framework, or leave it as it was; subscriptions have changed."""
        wanted = any(self.events())
        if wanted != self._is_attached:
            self._is_attached = wanted
            if wanted:
                self.attach()
            else:
                self.detach()

    def prepare(self) -> None:
        """Import what is to be touched. Not under the lock: another thread may import it and subscribe in that."""

    def events(self) -> tuple[Event, ...]:
        """Return the events that this is the source of."""
        return self.before, self.after

    def attach(self) -> None:
        """Touch the framework."""
        raise NotImplementedError

    def detach(self) -> None:
        """Leave it as it was."""
        raise NotImplementedError


class Tap(Source):
    """A function that is replaced while one of its events has a subscriber.

    `before` and `ended` have the arguments of a call, `after` its result and then the arguments.

    Args:
        name: of the function.
        owners: modules or classes that hold it, or their names: ``module`` or ``module:class``. They are imported
            for the first subscriber. What does not exist in this release is left out.

    Attributes:
        ended: the event that it has returned or raised; before `after`.
    """

    def __init__(self, name: str, *owners: Any) -> None:
        super().__init__()
        self.ended = Event(self)
        self._name, self._owners, self._patches = name, owners, Patches()
        self._turn: object = None  # one that was patched over since, and so was not restored, has another

    @property
    def module(self) -> str:
        """The name of the module of the first owner, for those who wait until a script imports it."""
        return str(self._owners[0]).partition(":")[0]

    def events(self) -> tuple[Event, ...]:
        """Return the events that this is the source of."""
        return self.before, self.ended, self.after

    def prepare(self) -> None:
        """Import the owners."""
        self.owners()

    def owners(self) -> list[Any]:
        """Return those that hold the function."""
        found = [_imported(owner) if isinstance(owner, str) else owner for owner in self._owners]
        return [owner for owner in found if owner is not None and hasattr(owner, self._name)]

    def signature(self) -> inspect.Signature:
        """Return the parameters of the function."""
        return inspect.signature(getattr(self.owners()[0], self._name))

    def attach(self) -> None:
        """Replace the function."""
        self._turn = object()
        for owner in self.owners():
            self._patches.around(owner, self._name, self._make)

    def detach(self) -> None:
        """Restore it."""
        self._turn = None
        self._patches.undo()

    def _make(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        tap, turn = self, self._turn

        def tapped(*arguments: Any, **options: Any) -> Any:
            # A compiler follows this: it answers the first question, and has to find the plain function alone.
            if is_recorded() or tap._turn is not turn:
                return plain(*arguments, **options)
            tap.before.tell(*arguments, **options)
            try:
                result = plain(*arguments, **options)
            finally:
                tap.ended.tell(*arguments, **options)
            tap.after.tell(result, *arguments, **options)
            return result

        return tapped


def _imported(name: str) -> Any:
    module, _, kind = name.partition(":")
    try:
        found = importlib.import_module(module)
    except ImportError:
        return None
    return getattr(found, kind, None) if kind else found


class OutermostTap(Tap):
    """A function that may call itself, of which the outermost calls of a thread alone are events."""

    def _make(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        tap, turn, within = self, self._turn, threading.local()

        def tapped(*arguments: Any, **options: Any) -> Any:
            if getattr(within, "call", False) or is_own_run() or is_recorded() or tap._turn is not turn:
                return plain(*arguments, **options)
            within.call = True
            try:
                tap.before.tell(*arguments, **options)
                result = plain(*arguments, **options)
                tap.after.tell(result, *arguments, **options)
                return result
            finally:
                within.call = False

        return tapped


@dataclass(eq=False)
class TrainCall:
    """A call of a method that trains.

    Attributes:
        arguments: that it gets, with the object; a subscriber may exchange them.
        options: the same.
        until_it_ends: contexts that are entered, and are left when it returns or raises.
    """

    arguments: tuple[Any, ...]
    options: dict[str, Any]
    until_it_ends: ExitStack


class TrainTap(Tap):
    """A method that trains. `before` has a `TrainCall` and the method itself."""

    def _make(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        tap, turn = self, self._turn

        def train(*arguments: Any, **options: Any) -> Any:
            if tap._turn is not turn:
                return plain(*arguments, **options)
            with ExitStack() as until_it_ends:
                call = TrainCall(arguments, options, until_it_ends)
                tap.before.tell(call, plain)
                return plain(*call.arguments, **call.options)

        return train
