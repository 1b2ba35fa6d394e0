"""Reads bytecode: what a method is called on, what an element is written into, what comes from outside."""

from __future__ import annotations

import dis
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

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
