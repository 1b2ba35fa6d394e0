"""Finds random numbers that Python code draws while TensorFlow traces it, and that every later run repeats."""

from __future__ import annotations

import dis
import functools
import inspect
import random
import types
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.keras import internals
from diagnostics.facts.data import FrozenDraws
from diagnostics.facts.where import Where, is_user_code, shorten
from diagnostics.taps import keras as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

RUNS = 8  # calls without a draw, or elements of a dataset, from which on a number counts as repeated
TRACES = 4  # of a function: two if it creates variables, one for a short batch; more traces mean new draws
OBJECTS = 500  # functions and layers behind a traced function that are read
GLOBAL = {id(np.random.mtrand._rand): "numpy.random", id(random._inst): "random"}
KINDS = (np.random.Generator, np.random.RandomState, random.Random)
OF_OBJECTS = ("LOAD_ATTR", "LOAD_METHOD")
DEFAULT_SEED = 87654321  # of a graph, where the script has set none for all
NOT_RUN = ("__init__", "build")  # methods whose draws are meant to stay


@dataclass
class _Draw:
    """A generator that was drawn from in a trace."""

    generator: Any
    fact: FrozenDraws
    state: Any  # after the trace


@dataclass
class _Function:
    """A `tf.function`: how often it drew in a trace, what the latest trace drew, and its calls since."""

    traces: int = 0
    calls: int = 0
    draws: list[_Draw] = field(default_factory=list)
    before: list[Any] = field(default_factory=list)  # states at the beginning of a call


@dataclass
class _Trace:
    """A trace that is under way: states of the generators by place, and of which of them numbers were drawn."""

    function: Any
    states: dict[int, tuple[Any, Any]]
    drawn: set[int] = field(default_factory=set)
    is_new: bool = False  # a layer that is called and has yet to make its weights
    listening: Unsubscribe = lambda: None

    def look(self) -> None:
        """Note from which generators was drawn since."""
        for place, (generator, state) in self.states.items():
            if (now := state_of(generator)) != state:
                self.drawn.add(place)
                self.states[place] = generator, now

    def builds(self, layer: Any, *_arguments: Any, **_options: Any) -> None:
        """Take a layer that is about to be called."""
        self.look()
        self.is_new = not layer.built

    def built(self, _result: Any, _layer: Any, *_arguments: Any, **_options: Any) -> None:
        """Take what a layer drew to make its weights for meant."""
        if self.is_new:
            self.states = {place: (one, state_of(one)) for place, (one, _) in self.states.items()}


class TracedDraws:
    """Compares the states of random generators before and after each trace, and around the calls that follow.

    Args:
        guard: runs the work.
    """

    def __init__(self, guard: FaultGuard) -> None:
        self._guard = guard
        self._functions: IdentityMap[Any, _Function] = IdentityMap()
        self._calling: Any = None
        self._mapped: tuple[Any, Any, Any] | None = None  # dataset, function and transformation
        self._trace: _Trace | None = None
        self._found: dict[Where, FrozenDraws] = {}

    def listen(self) -> Unsubscribe:
        """Start listening; return what ends it."""
        return subscribe(
            self._guard.attempt,
            (taps.function_call.before, self._calls),
            (taps.function_call.after, self._called),
            (taps.dataset_function.before, self._maps),
            (taps.dataset_function.ended, self._mapped_it),
            (taps.graph_trace.before, self._begins),
            (taps.graph_trace.after, self._ended),
        )

    def facts(self) -> tuple[FrozenDraws, ...]:
        """Return what was found, one for each line of the script."""
        return tuple(self._found.values())

    def _calls(self, function: Any, *_arguments: Any, **_options: Any) -> None:
        self._calling, known = function, self._functions.get(function)
        if known is not None:
            known.before = [state_of(draw.generator) for draw in known.draws]

    def _called(self, _result: Any, function: Any, *_arguments: Any, **_options: Any) -> None:
        self._calling, known = None, self._functions.get(function)
        if known is None or not known.before:
            return
        # Code that a graph calls back may draw at any time, in a thread of its own.
        calls_back = internals.script_ops._py_funcs.size() > 0
        pairs = zip(known.draws, known.before, strict=True)
        known.draws = [
            draw for draw, before in pairs if state_of(draw.generator) == (draw.state if calls_back else before)
        ]
        known.calls, known.before = known.calls + 1, []
        if known.calls >= RUNS:
            for draw in known.draws:
                self._found.setdefault(draw.fact.where, draw.fact)
            known.draws = []

    def _maps(self, _wrapper: Any, function: Any, name: str, dataset: Any = None, *_: Any, **__: Any) -> None:
        self._mapped = dataset, function, name

    def _mapped_it(self, *_arguments: Any, **_options: Any) -> None:
        self._mapped = None

    def _begins(self, _name: str, function: Any, *_arguments: Any, **_options: Any) -> None:
        if self._calling is None and self._mapped is None:
            return  # a graph that is made to be looked at
        function = function if self._mapped is None else self._mapped[1]
        generators = [one for one, _ in _behind(function) if isinstance(one, KINDS)]
        trace = self._trace = _Trace(function, {id(one): (one, state_of(one)) for one in generators})
        if generators:
            trace.listening = subscribe(
                self._guard.attempt, (taps.maybe_build.before, trace.builds), (taps.maybe_build.after, trace.built)
            )

    def _ended(self, graph: Any, *_arguments: Any, **_options: Any) -> None:
        trace, self._trace = self._trace, None
        if trace is None:
            return
        trace.listening()
        trace.look()
        draws = [] if not trace.drawn or _is_seeded(graph) else list(self._draws(trace))
        if self._mapped is None:
            if trace.drawn:
                known = self._functions.setdefault(self._calling, _Function())
                known.traces, known.calls, known.before = known.traces + 1, 0, []
                known.draws = draws if known.traces <= TRACES else []
            return
        dataset, elements = self._mapped[0], None
        if draws and dataset is not None and tf.executing_eagerly():
            elements = int(dataset.cardinality())
        if elements is not None and elements < 0:  # unknown, or without end
            elements = None
        for draw in draws if elements is None or elements >= RUNS else []:
            self._found.setdefault(draw.fact.where, replace(draw.fact, runs=elements))

    def _draws(self, trace: _Trace) -> Iterator[_Draw]:
        for place in trace.drawn:
            generator, state = trace.states[place]
            where = next((at for one, at in _behind(trace.function) if one is generator and at is not None), None)
            if where is not None:
                named = GLOBAL.get(
                    place, f"a {type(generator).__module__.split('.')[0]} {type(generator).__name__}"
                )
                kind: Literal["call", "element"] = "call" if self._mapped is None else "element"
                yield _Draw(generator, FrozenDraws(where, named, kind, RUNS), state)


def state_of(generator: Any) -> Any:
    """Return the state of a random generator, which can be compared with another."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    legacy = isinstance(generator, np.random.RandomState)
    state = generator.get_state(legacy=False) if legacy else generator.bit_generator.state
    leaves = keras.tree.flatten(state)
    return tuple(leaf.tobytes() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves)


def _behind(function: Any) -> Iterator[tuple[Any, Where | None]]:
    """Yield what a function can reach, each with the line of the script that names it, if that is the script's."""
    waiting: list[tuple[Any, Where | None]] = [(function, None)]
    seen: set[int] = set()
    while waiting and len(seen) < OBJECTS:
        one, where = waiting.pop()
        yield one, where
        if id(one) not in seen:
            seen.add(id(one))
            waiting += _named_by(one)


def _named_by(one: Any) -> Iterator[tuple[Any, Where | None]]:
    if isinstance(one, functools.partial):
        yield from ((value, None) for value in (one.func, *one.args))
    elif isinstance(one, types.MethodType):
        function: Any = one.__func__
        if is_user_code(one.__code__.co_filename):
            yield from _read(one.__code__, function.__globals__, one.__self__)
        else:
            yield from ((one.__func__, None), (one.__self__, None))
    elif isinstance(one, keras.layers.Layer):
        methods: dict[type, list[types.FunctionType]] = {}  # of the script, by class
        for layer in one._flatten_layers():
            for kind in type(layer).__mro__:
                if kind not in methods:
                    methods[kind] = _own_methods(kind)
                for method in methods[kind]:
                    yield from _read(method.__code__, method.__globals__, layer)
    elif isinstance(one, types.FunctionType):
        inside = inspect.getclosurevars(one).nonlocals
        if is_user_code(one.__code__.co_filename):
            yield from _read(one.__code__, {**one.__globals__, **inside}, None)
        else:
            yield from ((value, None) for value in inside.values())
        if (wrapped := getattr(one, "__wrapped__", None)) is not None:
            yield wrapped, None
    elif callable(python := getattr(one, "python_function", None)):  # a `tf.function`
        yield python, None
    elif isinstance(call := vars(type(one)).get("__call__"), types.FunctionType):
        yield types.MethodType(call, one), None


def _own_methods(kind: type) -> list[types.FunctionType]:
    functions = (value for value in vars(kind).values() if isinstance(value, types.FunctionType))
    return [one for one in functions if one.__name__ not in NOT_RUN and is_user_code(one.__code__.co_filename)]


def _read(code: types.CodeType, known: dict[str, Any], owner: Any) -> Iterator[tuple[Any, Where | None]]:
    """Yield the functions, layers and generators that code names, as variables or as attributes of its object."""
    line, held = code.co_firstlineno, getattr(owner, "__dict__", {})
    for instruction in dis.get_instructions(code):
        line = (instruction.positions and instruction.positions.lineno) or line
        name, where = instruction.argval, Where(shorten(code.co_filename), line, code.co_name)
        if isinstance(name, types.CodeType):
            yield from _read(name, known, owner)
        elif isinstance(name, str) and instruction.opname.startswith("LOAD_"):
            value = (held if instruction.opname in OF_OBJECTS else known).get(name)
            if value is np.random or (value is np and "random" in code.co_names):
                value = np.random.mtrand._rand
            elif value is random:
                value = random._inst
            bound = getattr(value, "__self__", None)
            if isinstance(bound, KINDS):  # `from random import random`
                value = bound
            if value is not None and not isinstance(value, types.ModuleType | type):
                yield value, where


def _is_seeded(graph: Any) -> bool:
    """Whether a random operation was given a seed: a number that was drawn once for it is drawn from ever after.

    Without one, TensorFlow numbers the operations.
    """
    operations = [one for one in graph.get_operations() if "seed2" in one.node_def.attr]
    seeds = [(one.get_attr("seed"), one.get_attr("seed2")) for one in operations]
    return any(second > len(seeds) or (second and first == DEFAULT_SEED) for first, second in seeds)
