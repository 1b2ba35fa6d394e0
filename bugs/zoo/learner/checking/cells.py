"""Runs a learner's cells and behind them the assertions of our answers, in one namespace, as a notebook does.

`python -m bugs.zoo.learner.checking.cells STEPS RESULT` reads a list of steps as JSON. A step with `cell` is a
learner's cell, or one of ours that prepares; a step with `exercise` is an answer, without the statements that give
the names in `given` a value. RESULT is a JSON object: `problems`, by exercise, and `broken`, by cell.
"""

from __future__ import annotations

import ast
import json
import os
import reprlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bugs.zoo.learner.exercises import bound_by

STEP = "bug-zoo step"  # a line of these words, "3 of 20", tells how far it is
_SHORT = reprlib.Repr()
_SHORT.maxdict = _SHORT.maxlist = _SHORT.maxtuple = 8
_SHORT.maxother = _SHORT.maxstring = 80
DEFINES = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)  # what later cells may need


def main(arguments: list[str]) -> int:
    """Run the steps, write the result, and return 0."""
    os.environ.setdefault("MPLBACKEND", "agg")
    from IPython.core.interactiveshell import InteractiveShell

    plan = json.loads(Path(arguments[0]).read_text("utf-8"))
    shell = InteractiveShell.instance(colors="nocolor")
    shell.user_ns.update(plan["names"])
    problems: dict[str, str] = {}
    broken: dict[str, str] = {}
    for number, step in enumerate(plan["steps"], start=1):
        print(f"{STEP} {number} of {len(plan['steps'])}", file=sys.stderr, flush=True)
        if "exercise" in step:
            problem = _failed(step["source"], set(step["given"]), shell.user_ns)
            if problem:
                problems[str(step["exercise"])] = problem
        else:
            done = shell.run_cell(step["source"], store_history=True)
            error = done.error_before_exec or done.error_in_exec
            if error is not None and not step["may_raise"]:
                broken[str(step["cell"])] = _named(error)
    Path(arguments[1]).write_text(json.dumps({"problems": problems, "broken": broken}), "utf-8")
    return 0


def _failed(answer: str, given: set[str], space: dict[str, Any]) -> str:
    """Run an answer with the given names as they are; return the first thing that does not hold, or ""."""
    problem = ""
    for statement in ast.parse(answer).body:
        if bound_by(statement) & given or _is_about_our_text(statement):
            continue
        if problem and not isinstance(statement, DEFINES):
            continue
        try:
            exec(compile(ast.Module([statement], []), "<the answer's assertions>", "exec"), space)
        except AssertionError as error:
            test = statement.test if isinstance(statement, ast.Assert) else None
            problem = "An assertion fails" if test is None else f"An assertion fails: {ast.unparse(test)}"
            problem += f" ({error})" if str(error) else ""
            problem += "".join(f". `{name}` is {value}" for name, value in _given(test, given, space).items())
        except Exception as error:
            problem = f"It raises {_named(error)}, in {ast.unparse(statement).splitlines()[0]}"
    return problem


def _given(test: ast.expr | None, given: set[str], space: dict[str, Any]) -> dict[str, str]:
    """Return what a learner's names, and calls of them with constants, are worth in an assertion that failed."""
    worth: dict[str, str] = {}
    for node in () if test is None else ast.walk(test):
        plain = isinstance(node, ast.Name) and not callable(space.get(node.id))
        called = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and not node.keywords
            and all(isinstance(argument, ast.Constant) for argument in node.args)
        )
        name = node.id if isinstance(node, ast.Name) else node.func.id if called else ""
        if name not in given or not (plain or called):
            continue
        try:
            value = eval(compile(ast.Expression(node), "<a learner's value>", "eval"), space)
            worth[ast.unparse(node)] = _SHORT.repr(value)
        except Exception:  # the assertion has shown what the learner's code does
            continue
    return worth


def _is_about_our_text(statement: ast.stmt) -> bool:
    """Return whether a statement asserts how our fix changes a mystery's text, which another fix need not."""
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return isinstance(statement, ast.Assert) and {"fixed", "source"} <= names


def _named(error: BaseException) -> str:
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def read_result(file: Path) -> Mapping[str, Mapping[str, str]] | None:
    """Read a result; None if the process was ended before there was one."""
    try:
        found: Mapping[str, Mapping[str, str]] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found


def progress(chunk: bytes) -> str:
    """Return how far it is, from what the process writes to standard error: "step 3 of 20", or ""."""
    _, found, rest = chunk.decode("utf-8", "replace").rpartition(STEP)
    return f"step{rest.splitlines()[0]}" if found else ""


def plan(steps: Sequence[Mapping[str, Any]], names: Mapping[str, Any]) -> str:
    """Return the text of the file STEPS; the names have their values before the first step."""
    return json.dumps({"steps": list(steps), "names": dict(names)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
