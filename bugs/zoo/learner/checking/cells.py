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
FAILED = "An assertion fails"  # what a problem begins with that is not an exception
_SIDE = "_bug_zoo_side_"  # with a number, a side of a comparison that is being asserted
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
        sides = _keep_sides(statement) if isinstance(statement, ast.Assert) else []
        try:
            code = ast.fix_missing_locations(ast.Module([statement], []))
            exec(compile(code, "<the answer's assertions>", "exec"), space)
        except AssertionError as error:
            problem = FAILED
            if isinstance(statement, ast.Assert):
                test, worth = _failed_test(statement.test, sides, given, space)
                problem += f": {test}" + (f" ({error})" if str(error) else "")
                problem += "".join(f". `{name}` is {value}" for name, value in worth.items())
        except Exception as error:
            problem = f"It raises {_named(error)}, in {ast.unparse(statement).splitlines()[0]}"
        for name in range(len(sides)):
            space.pop(f"{_SIDE}{name}", None)
    return problem


def _keep_sides(statement: ast.Assert) -> list[ast.Compare]:
    """Have an assertion keep the sides that it compares, each under the next name, as they are evaluated.

    Returns:
        For each side the comparison that ends with it; an empty list if it is not comparisons that decide.
    """
    test = statement.test
    joined = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    if not all(isinstance(each, ast.Compare) for each in joined):
        return []
    made: list[ast.Compare] = []

    def kept(side: ast.expr, before: ast.expr, operators: list[ast.cmpop]) -> ast.expr:
        made.append(ast.Compare(before, operators, [side] if operators else []))
        return ast.NamedExpr(ast.Name(f"{_SIDE}{len(made) - 1}", ast.Store()), side)

    for each in joined:
        assert isinstance(each, ast.Compare)
        sides = [each.left, *each.comparators]
        each.left = kept(each.left, each.left, [])
        each.comparators = [
            kept(side, before, [operator])
            for before, operator, side in zip(sides, each.ops, sides[1:], strict=False)
        ]
    return made


def _failed_test(
    test: ast.expr, sides: list[ast.Compare], given: set[str], space: dict[str, Any]
) -> tuple[str, dict[str, str]]:
    """Return what did not hold, and what its sides and the learner's names in it are worth."""
    worth: dict[str, str] = {}
    last = max((number for number in range(len(sides)) if f"{_SIDE}{number}" in space), default=None)
    if last is not None and sides[last].ops:
        test = sides[last]
        for number, side in ((last - 1, sides[last].left), (last, sides[last].comparators[0])):
            if any(isinstance(node, ast.Name) for node in ast.walk(side)):
                worth[ast.unparse(side)] = _SHORT.repr(space[f"{_SIDE}{number}"])
    for node in ast.walk(test):
        if isinstance(node, ast.Name) and node.id in given and not callable(space.get(node.id)):
            worth.setdefault(node.id, _SHORT.repr(space.get(node.id)))
    return ast.unparse(test), worth


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
