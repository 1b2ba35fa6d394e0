"""Decides whether a call of user code could have side effects. The code is read and never run.

What can be noticed: a counter that moves, a line that is printed, a file that is written, a metric that is sent.
Code of the well-known libraries is trusted. Code of the user's is trusted if its bytecode has no way to do any of
this: it computes with its arguments and with values that nobody sees change. What cannot be told is refused.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

from .sandbox import is_sandboxed

LIBRARIES = frozenset(
    (
        *(
            "builtins",
            "abc",
            "cmath",
            "collections",
            "copy",
            "dataclasses",
            "enum",
            "functools",
            "itertools",
            "json",
        ),
        *("math", "operator", "random", "re", "statistics", "string", "time", "types", "typing"),
        *("numpy", "scipy", "sklearn", "pandas", "pyarrow", "PIL", "einops", "tokenizers", "datasets"),
        *("torch", "torchvision", "torchaudio", "timm", "transformers", "peft"),
    )
)
"""Top-level packages whose functions keep no account of their calls, but for `EFFECTS` and random states."""

FORBIDDEN_BUILTINS = frozenset(
    (
        *("print", "open", "input", "exec", "eval", "compile", "__import__", "breakpoint", "exit", "quit"),
        *("setattr", "delattr", "globals", "locals", "vars"),
    )
)
EFFECTS = frozenset(
    (
        *("save", "savez", "savez_compressed", "savetxt", "imsave", "tofile", "dump", "write", "writelines"),
        *("to_csv", "to_json", "to_parquet", "to_pickle", "save_to_disk", "save_pretrained", "push_to_hub"),
        *("set_format", "set_transform", "set_default_dtype", "set_default_device", "set_num_threads"),
        *("use_deterministic_algorithms", "set_detect_anomaly", "on_log", "log_metrics", "save_metrics"),
        *("backward", "__dict__", "__class__", "__globals__"),
    )
)
"""Attributes that change what others see, whatever they are taken from."""

MUTATORS = frozenset(
    (
        *("append", "appendleft", "extend", "insert", "pop", "popleft", "popitem", "remove", "discard", "clear"),
        *("update", "setdefault", "add", "sort", "reverse", "fill", "resize", "put", "itemset"),
    )
)
UNUSED = ("__repr__", "__str__", "__eq__", "__hash__", "__replace__")  # of an object that code makes for itself
STORES = ("STORE_GLOBAL", "DELETE_GLOBAL", "DELETE_ATTR", "STORE_NAME", "DELETE_NAME")

MAKERS = (
    "BUILD_LIST",
    "BUILD_SET",
    "BUILD_MAP",
    "BUILD_CONST_KEY_MAP",
    "LIST_EXTEND",
    "SET_UPDATE",
    "DICT_UPDATE",
)
EMPTY = ("list", "dict", "set")
CHANGES_ARGUMENT = ("put", "copyto", "place", "putmask", "fill_diagonal")  # functions of modules

Instructions = Sequence[dis.Instruction]


def is_library(value: Any, libraries: frozenset[str] = LIBRARIES) -> bool:
    """Whether a class, function or module, or the class of an object, comes with one of these."""
    if isinstance(value, ModuleType):
        module: Any = value.__name__
    elif isinstance(value, BuiltinFunctionType):
        if not isinstance(value.__self__, ModuleType | type | None):  # such as the append of somebody's list
            return type(value.__self__).__module__.partition(".")[0] in ("torch", "numpy")
        return value.__module__ is None or value.__module__.lstrip("_").partition(".")[0] in libraries
    else:
        kind = value if isinstance(value, type | FunctionType) else type(value)
        module = getattr(kind, "__module__", None)
    return isinstance(module, str) and module.lstrip("_").partition(".")[0] in libraries


class Reading:
    """Reads functions, and what they call, until one is found that might be noticed.

    Args:
        taken_care_of: methods of `self` that are replaced while the code runs, so that a call of them is harmless.
        libraries: top-level packages that are trusted.
        effects: attributes that change what others see.
        mutators: attributes that change an object.
        apart: identities of objects that are read on their own.
        unchanged: whether no code that is read changes a value for others.
        hands_over: whether a method that is read may pass its object on; then all methods of its class are read.

    Attributes:
        generators: of random numbers that the code uses, for the caller to restore.
    """

    def __init__(
        self,
        taken_care_of: frozenset[str] = frozenset(),
        *,
        libraries: frozenset[str] = LIBRARIES,
        effects: frozenset[str] = EFFECTS,
        mutators: frozenset[str] = MUTATORS,
        apart: frozenset[int] = frozenset(),
        unchanged: Callable[[Any], bool] = lambda _: False,
        hands_over: bool = False,
    ) -> None:
        self._taken_care_of, self._libraries, self._effects = taken_care_of, libraries, effects
        self._mutators, self._unchanged, self._hands_over = mutators, unchanged, hands_over
        self._apart = apart
        self.generators: list[Any] = []
        self._read: set[tuple[int, bool]] = set()
        self._objects: set[int] = set()
        self._shared: str | None = None  # a list, dict, tensor or array that is not ours alone
        self._mutates: str | None = None  # what might change one

    def objection(self, value: Any, name: str, copied: bool = False) -> str | None:
        """Say why `value` must not be called, as a clause without a subject; None if it may be.

        Args:
            value: a function, method, class, or an object that can be called.
            name: what to call it.
            copied: whether the object that it is a method of is a deep copy.
        """
        why = self._callable(value, name, copied)
        if why is None and self._shared is not None and self._mutates is not None:
            why = f"{name} might change {self._shared} ({self._mutates})"
        return why

    def _callable(self, value: Any, name: str, copied: bool) -> str | None:
        if isinstance(value, functools.partial):
            parts = (
                value.func,
                *(v for v in (*value.args, *value.keywords.values()) if not self._is_value(v, name)),
            )
            return self._first(self._callable(part, name, copied) for part in parts)
        if isinstance(value, MethodType):
            if self._is_library(value.__func__) and self._is_library(value.__self__):
                return None
            return self._function(value.__func__, name, copied, value.__self__)
        if isinstance(value, FunctionType):
            return None if self._is_library(value) else self._function(value, name, copied)
        if self._is_library(value):
            return None
        if isinstance(value, type):
            self._shared = self._shared or f"the class {name!r}"
            kinds = [kind for kind in reversed(value.__mro__) if not self._is_library(kind)]
            methods = {method: part for kind in kinds for method, part in vars(kind).items()}
            functions = [f for m, f in methods.items() if isinstance(f, FunctionType) and m not in UNUSED]
            return self._first(self._function(part, name, copied=True, made=True) for part in functions)
        call = inspect.getattr_static(type(value), "__call__", None)
        if isinstance(call, FunctionType):
            return self._function(call, name, copied, value)
        return f"{name} is a {type(value).__name__}, whose code cannot be read"

    def _function(
        self, function: Any, name: str, copied: bool, owner: Any = None, made: bool = False
    ) -> str | None:
        """Read one function; `made`: it is a method of an object that the code makes for itself."""
        while hasattr(function, "__wrapped__") and self._is_library(function):  # decorated, as by torch.no_grad
            function = function.__wrapped__
        if not isinstance(function, FunctionType):
            return f"{name} cannot be read"
        if (id(function), copied) in self._read:
            return None
        self._read.add((id(function), copied))
        free = free_variables(function)
        first = function.__code__.co_varnames[:1] if owner is not None or copied else ()
        values = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        if any(not self._is_value(value, name) for value in values):
            return f"{name} has a default value that calls could share"
        for code in codes(function.__code__):
            why = self._code(code, function, free, name, first[0] if first else None, owner, copied, made)
            if why is not None:
                return why
        return None

    def _code(
        self,
        code: CodeType,
        function: FunctionType,
        free: Mapping[str, Any],
        name: str,
        own: str | None,
        owner: Any,
        copied: bool,
        made: bool,
    ) -> str | None:
        instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "EXTENDED_ARG")]
        made_by_it = made_here(code, instructions)
        for place, this in enumerate(instructions):
            following = instructions[place + 1] if place + 1 < len(instructions) else None
            kind, operand = this.opname, this.argval
            if kind in STORES or (kind == "STORE_DEREF" and operand in function.__code__.co_freevars):
                return f"{name} assigns to {operand!r}, which is not its own"
            if kind == "STORE_ATTR":
                if not copied:
                    return f"{name} sets the attribute {operand!r}"
                if not made:
                    self._mutates = self._mutates or f"{name} sets the attribute {operand!r}"
            if kind in ("STORE_SUBSCR", "DELETE_SUBSCR") and not is_written_here(instructions, place, made_by_it):
                self._mutates = self._mutates or f"{name} assigns to an element"
            if kind == "IMPORT_NAME" and operand.partition(".")[0] not in self._libraries:
                return f"{name} imports {operand}"
            if kind in ("LOAD_GLOBAL", "LOAD_NAME"):
                why = self._global(operand, function, name)
            elif kind in ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_CLOSURE") and operand in free:
                why = None if operand == "__class__" else self._value(free[operand], operand, name)
            elif kind in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"):
                harmless = is_harmless_receiver(instructions, place, made_by_it, function.__globals__)
                why = self._attribute(str(operand), name, harmless)
            else:
                why = None
            if why is None and own is not None and owner is not None and ends_with(this, own):
                if following is None or following.opname not in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR"):
                    passes = copied or calls_super(instructions)
                    why = None if passes else self._handed_over(owner, own, name)
                elif following.opname != "STORE_ATTR":
                    why = self._of_owner(owner, str(following.argval), name, copied)
            if why is not None:
                return why
        return None

    def _attribute(self, attribute: str, name: str, harmless: bool) -> str | None:
        if attribute in self._effects:
            return f"{name} uses {attribute!r}"
        in_place = attribute.endswith("_") and not attribute.startswith("_")
        if not harmless and (in_place or attribute in self._mutators):
            self._mutates = self._mutates or f"{name} uses {attribute!r}"
        return None

    def _global(self, variable: str, function: FunctionType, name: str) -> str | None:
        if variable in function.__globals__:
            return self._value(function.__globals__[variable], variable, name)
        if variable in FORBIDDEN_BUILTINS:
            return f"{name} calls {variable}"
        if variable == "type":
            self._shared = self._shared or "its class"
        return None if hasattr(builtins, variable) else f"{name} uses {variable!r}, which is not there yet"

    def _value(self, value: Any, variable: str, name: str, copied: bool = False) -> str | None:
        """Say why a value that code takes from outside cannot be trusted."""
        if hasattr(type(value), "python_function"):  # of a `tf.function`
            value = value.python_function
        if self._is_value(value, variable, copied):
            return None
        if isinstance(value, FunctionType | MethodType | functools.partial | type):
            return self._callable(value, variable, copied)
        drawn_from = value.__self__ if isinstance(value, BuiltinFunctionType) else value
        if _is_random_state(drawn_from):
            self.generators.append(drawn_from)
            return None
        if self._unchanged(value):
            return None
        if self._is_library(value) and not _moves_on(value):
            if _is_module(value):
                return self._first(self._value(part, variable, name) for part in value.children())
            if not (
                isinstance(value, ModuleType) or callable(value) or hasattr(type(value), "convert_tokens_to_ids")
            ):
                self._shared = self._shared or f"{variable!r}"
            return None
        return self._object(value, variable, name)

    def _object(self, value: Any, variable: str, name: str) -> str | None:
        """Read all methods of an object of the user's: any of them might be called."""
        kinds = [kind for kind in reversed(type(value).__mro__) if not self._is_library(kind)]
        parts = {method: part for kind in kinds for method, part in vars(kind).items()}
        if not kinds or any(isinstance(part, MethodDescriptorType) for part in parts.values()) or _moves_on(value):
            return f"{name} uses {variable!r}, which it might change"
        self._shared = self._shared or f"{variable!r}"
        if id(value) in self._objects:
            return None
        self._objects.add(id(value))
        plain = {method: getattr(part, "fget", getattr(part, "__func__", part)) for method, part in parts.items()}
        return self._first(
            self._function(part, f"{type(value).__name__}.{method}", False, value)
            for method, part in plain.items()
            if isinstance(part, FunctionType) and method not in (*UNUSED, "__init__", *self._taken_care_of)
        )

    def _handed_over(self, owner: Any, own: str, name: str) -> str | None:
        """Say why a method must not pass on the object that it is called on."""
        return self._object(owner, own, name) if self._hands_over else f"{name} hands over {own!r}"

    def _of_owner(self, owner: Any, attribute: str, name: str, copied: bool) -> str | None:
        """Say why what a method takes from its object cannot be trusted."""
        if attribute in self._taken_care_of:
            return None
        if _is_module(owner) and any(
            attribute in getattr(owner, part) for part in ("_modules", "_parameters", "_buffers")
        ):
            return None  # the modules within are read on their own
        try:
            found = inspect.getattr_static(owner, attribute)
        except AttributeError:
            return None  # it raises, or is there by a `__getattr__` that is read as a method
        if id(found) in self._apart:
            return None
        if isinstance(found, property):
            return self._callable(found.fget, attribute, copied)
        if isinstance(found, staticmethod | classmethod):
            return self._callable(found.__func__, attribute, copied)
        if isinstance(found, FunctionType) and attribute not in getattr(owner, "__dict__", {}):
            return None if self._is_library(found) else self._function(found, attribute, copied, owner)
        if copied and not callable(found):
            return None
        return self._value(found, attribute, name, copied)

    def _is_value(self, value: Any, name: str, copied: bool = False) -> bool:
        """Whether a value is plain: nothing but numbers, text, and containers of such."""
        if isinstance(value, type(None) | bool | int | float | complex | str | bytes | range | slice):
            return True
        if isinstance(value, np.dtype | np.generic) or _is_plain_of_torch(value):
            return True
        if isinstance(value, tuple | frozenset):
            return all(self._is_value(part, name, copied) for part in value)
        if type(value) in (list, dict, set) or isinstance(value, np.ndarray) or _is_tensor(value):
            if not copied:
                self._shared = self._shared or f"{name!r}"
            return True
        return False

    def _is_library(self, value: Any) -> bool:
        return is_library(value, self._libraries)

    @staticmethod
    def _first(answers: Iterator[str | None]) -> str | None:
        return next((answer for answer in answers if answer is not None), None)


def objection_to_module(model: Any) -> str | None:
    """Say why a deep copy of a model must not be run; None if it may be, as any may in a sandbox."""
    if is_sandboxed():
        return None
    for module in model.modules():
        kind = type(module)
        hooks = [
            hook
            for held in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
            for hook in getattr(module, held, {}).values()
        ]
        calls: list[tuple[Any, str]] = [(hook, "a hook") for hook in hooks]
        if "forward" in vars(module):
            calls.append((vars(module)["forward"], "forward"))
        for name in ("forward", "__call__", "__getattr__", "__setattr__", "__deepcopy__", "__getstate__"):
            method = getattr(kind, name, None)
            if isinstance(method, FunctionType) and not is_library(method):
                calls.append((MethodType(method, module), f"{kind.__name__}.{name}"))
        for call, name in calls:
            if (why := Reading().objection(call, name, copied=name != "a hook")) is not None:
                return why
    return None


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a function's code and that of the functions and comprehensions within."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def _is_module(value: Any) -> bool:
    nn = sys.modules.get("torch.nn")  # this module reads code of Keras' users, too, who may have no PyTorch
    return nn is not None and isinstance(value, nn.Module)


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_plain_of_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.dtype | torch.device | torch.Size)


def _is_random_state(value: Any) -> bool:
    from .rng import is_generator

    return is_generator(value)  # whoever calls the code puts these back


def _moves_on(value: Any) -> bool:
    """Whether using an object changes it: an iterator, a stream, a generator of TensorFlow's (`make_seeds`)."""
    return any(hasattr(type(value), name) for name in ("__next__", "write", "make_seeds"))


def made_here(code: CodeType, instructions: Instructions) -> frozenset[str]:
    """Name the variables that never hold anything but containers that the code makes itself."""
    made, others = set[str](), set(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + 2])
    for place, this in enumerate(instructions):
        if this.opname == "STORE_FAST":
            (made if _makes(instructions, place) else others).add(this.argval)
    return frozenset(made - others)


def _makes(instructions: Instructions, place: int) -> bool:
    before = [one for one in instructions[max(0, place - 4) : place] if one.opname != "PRECALL"]
    if before and before[-1].opname in MAKERS:
        return True
    if len(before) < 2 or before[-1].opname != "CALL":
        return False
    called = before[-2]  # a comprehension is called with an iterator
    return called.opname == "GET_ITER" or (called.opname == "LOAD_GLOBAL" and called.argval in EMPTY)


def is_written_here(instructions: Instructions, place: int, made: frozenset[str]) -> bool:
    """Whether an instruction that stores or deletes an element does so in a container of `made`."""
    if place < 2 or not instructions[place - 1].opname.startswith("LOAD_"):
        return False
    return _is_made(instructions[place - 2], made)


def is_harmless_receiver(
    instructions: Instructions, place: int, made: frozenset[str], names: Mapping[str, Any]
) -> bool:
    """Whether an attribute belongs to a container of `made`, or to a module, whose functions return new values.

    Args:
        instructions: of a function.
        place: of the instruction that takes the attribute.
        made: see `made_here`.
        names: the function's global variables.
    """
    before = instructions[place - 1] if place else None
    if before is None or _is_made(before, made):
        return before is not None
    if instructions[place].argval in CHANGES_ARGUMENT:
        return False
    path = list[str]()
    while place and instructions[place - 1].opname == "LOAD_ATTR":
        place -= 1
        path.insert(0, instructions[place].argval)
    if not place or instructions[place - 1].opname != "LOAD_GLOBAL":
        return False
    value = names.get(instructions[place - 1].argval)
    for name in path:
        if not isinstance(value, ModuleType):
            return False
        value = vars(value).get(name, sys.modules.get(f"{value.__name__}.{name}"))
    return isinstance(value, ModuleType)


def _is_made(instruction: dis.Instruction, made: frozenset[str]) -> bool:
    return instruction.opname == "LOAD_FAST" and instruction.argval in made


def free_variables(function: FunctionType) -> dict[str, Any]:
    """Return the variables of a closure, with their values."""
    values = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            values[name] = _Unassigned()
    return values


class _Unassigned:
    """Stands for a variable without a value."""


def ends_with(instruction: dis.Instruction, variable: str) -> bool:
    """Whether an instruction leaves this variable on top of the stack."""
    if not instruction.opname.startswith(("LOAD_FAST", "LOAD_DEREF", "STORE_FAST_LOAD_FAST")):
        return False
    operand = instruction.argval
    return bool(variable in operand if isinstance(operand, tuple) else operand == variable)


def calls_super(instructions: Instructions) -> bool:
    """Whether `super` is used."""
    return any(i.opname == "LOAD_GLOBAL" and i.argval == "super" for i in instructions)
