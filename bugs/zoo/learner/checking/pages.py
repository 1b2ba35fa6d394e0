"""Checks what belongs to a chapter: the exercises in a learner's notebook, and a learner's fix of its mystery.

Both run the assertions of our own pages on what the learner has written.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import symtable
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bugs.zoo.keeper.child import Ending, Sink, keep_quiet, run_child
from bugs.zoo.keeper.last_words import frame_in, last_exception, metrics
from bugs.zoo.keeper.verification import alarms, notes, read_report
from bugs.zoo.learner.checking import cells
from bugs.zoo.learner.checking.check import OWN, few_threads
from bugs.zoo.learner.checking.computed import written_in
from bugs.zoo.learner.checking.evidence import finding
from bugs.zoo.learner.checking.result import Check, Judgement
from bugs.zoo.learner.exercises import EXERCISE, bound_in, exercises, read, steps, tags
from bugs.zoo.learner.works import ranks_in
from diagnostics.text.join import listed

BUDGET_S, BUDGET_MB = 1800, 6000  # a chapter runs within 30 s, on a machine that has nothing else to do
_OF = {"after": "your script", "sound": "your script", "before": "the original", "broken": "the original"}
"""Whose results the names on the pages of the solutions hold."""
FIXED = "fixed"  # the name that holds our fix of a mystery's script, on the page of its solution


def check_chapter(
    word: str, source: Path, notebook: Path, *, to_errors: Sink = keep_quiet, stop: threading.Event | None = None
) -> Check:
    """Run a learner's notebook up to the last exercise tried; after the cells of each, what our answer asserts.

    Args:
        word: what the learner calls it, "chapter-05".
        source: the chapter's page.
        notebook: the learner's.
        to_errors: takes what tells how far it is.
        stop: ends it when it is set.

    Raises:
        ValueError: the file is not a notebook.
    """
    import nbformat

    try:
        theirs = nbformat.reads(notebook.read_text("utf-8"), as_version=4)
    except (ValueError, KeyError, AttributeError, nbformat.ValidationError):
        raise ValueError(f"{notebook.name} is not a notebook that can be read") from None
    ours = exercises(read(source))
    planned, why_not = steps(theirs, ours)
    tried = [place for place, step in enumerate(planned, start=1) if step.get("exercise") not in {None, *why_not}]
    result: Mapping[str, Mapping[str, str]] | None = {"broken": {}, "problems": {}}
    seconds = 0.0
    if tried:  # the cells behind the last of them decide nothing
        result, ending = _run_cells(planned[: tried[-1]], {}, to_errors, stop)
        seconds = ending.seconds
        if result is None:
            return Check("chapter", word, (_unfinished(ending),), seconds=seconds)
    judged = [
        Judgement(
            "notebook", False, f"{_cell(theirs, int(number))} fails: {error}.", "The cells below may need it."
        )
        for number, error in result["broken"].items()
    ]
    reservations = []
    for exercise in ours:
        name = f"{EXERCISE} {exercise.number}"
        if exercise.number in why_not:
            advice = "Write your answer into its cell." if why_not[exercise.number] == "not tried yet" else ""
            judged.append(Judgement(name, False, f"{why_not[exercise.number].capitalize()}.", advice))
        elif problem := result["problems"].get(str(exercise.number)):
            named = {each for each in exercise.names if re.search(rf"\b{each}\b", problem)} or exercise.names
            judged.append(Judgement(name, False, f"{problem}.", f"Look at {_listed(named)}."))
        elif exercise.is_checked:
            judged.append(
                Judgement(name, True, f"The assertions of the answer hold for {_listed(exercise.names)}.")
            )
        else:
            judged.append(Judgement(name, True, "You have written something."))
            reservations.append(f"{name.capitalize()} is an open question: compare your answer with ours.")
    return Check("chapter", word, tuple(judged), tuple(reservations), seconds=seconds)


def check_mystery(
    word: str,
    solution: Path,
    script: Path,
    *,
    to_errors: Sink = keep_quiet,
    on_rules: Any = lambda: None,
    stop: threading.Event | None = None,
) -> Check:
    """Run a learner's fix of a mystery under `diagnose run`, and then what its solution asserts of a fix.

    Args:
        word: what the learner calls it, "mystery-04".
        solution: the page of the solution.
        script: the learner's.
        to_errors: takes what tells how far it is.
        on_rules: called when the script has ended and the solution's assertions are about to run.
        stop: ends it when it is set.
    """
    with tempfile.TemporaryDirectory(prefix="bug-zoo-", ignore_cleanup_errors=True) as name:
        copy, output = Path(name) / script.name, Path(name) / "report.json"
        shutil.copyfile(script, copy)
        text = copy.read_text("utf-8", errors="replace")
        ending = run_child(
            [*launcher(text), "diagnostics", "run", *_options(output), str(copy)],
            budget_s=BUDGET_S,
            budget_mb=BUDGET_MB,
            to_stdout=keep_quiet,
            to_stderr=to_errors,
            environment=few_threads() | OWN,
            stop=stop,
        )
        report = read_report(output)
        judged = [_ran(ending, copy), _rules(report, leaves(solution))]
    if judged[0].ok:
        original = solution.with_suffix(".py").read_text("utf-8")
        if (constant := written_in(text, original)) is not None:
            judged.append(_written(*constant))
        else:
            on_rules()
            result, _ = _run_cells(_solution_steps(solution), {FIXED: text}, to_errors, stop)
            judged.append(_asserted(result, text, original))
    return Check(
        "mystery",
        word,
        tuple(judged),
        tuple(f"diagnose run notes {rule}: {finding(report, rule)['message']}" for rule in notes(report)),
        tuple(alarms(report)),
        metrics(ending.stdout),
        ending.seconds,
    )


def names_read(solution: Path, script: Path) -> list[str]:
    """Return the variables of a mystery's script that the solution's assertions read from a fix, in order."""
    if not solution.is_file():
        return []
    text = "\n\n".join(step["source"] for step in _solution_steps(solution) if "exercise" in step)
    functions = {
        node.name: node
        for step in _solution_steps(solution)
        for node in ast.parse(step["source"]).body
        if isinstance(node, ast.FunctionDef)
    }
    called = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    looked_at = [ast.parse(text), *(functions[name] for name in functions if name in called)]
    keys = {
        node.slice.value
        for tree in looked_at
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
        if isinstance(node.slice, ast.Constant)
    }
    return sorted(keys & _global_names(script.read_text("utf-8")))


def launcher(text: str) -> list[str]:
    """Return the arguments of Python, up to a module's name, that start a mystery's script as it says."""
    ranks = ranks_in(text)
    many = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "-m"]
    return ["-m", *(many if ranks > 1 else [])]


def _options(output: Path) -> list[str]:
    return ["--output", str(output), "--fail-on", "never", "--quiet"]


def _solution_steps(solution: Path) -> list[dict[str, Any]]:
    """Return the cells of a solution: from the one with our fix on, they are run with the learner's."""
    made: list[dict[str, Any]] = []
    is_fixed = False
    for number, cell in enumerate(read(solution).cells, start=1):
        if cell.cell_type != "code" or "remove-input" in tags(cell):  # which shows the report on the broken script
            continue
        is_fixed = is_fixed or FIXED in bound_in(cell.source)
        if is_fixed:
            made.append({"exercise": number, "source": cell.source, "given": [FIXED]})
        else:
            made.append({"cell": number, "source": cell.source, "may_raise": False})
    return made


def _run_cells(
    planned: Sequence[Mapping[str, Any]], names: Mapping[str, Any], to_errors: Sink, stop: threading.Event | None
) -> tuple[Mapping[str, Mapping[str, str]] | None, Ending]:
    with tempfile.TemporaryDirectory(prefix="bug-zoo-", ignore_cleanup_errors=True) as folder:
        todo, result = Path(folder) / "steps.json", Path(folder) / "result.json"
        todo.write_text(cells.plan(planned, names), "utf-8")
        ending = run_child(
            ["-m", "bugs.zoo.learner.checking.cells", str(todo), str(result)],
            budget_s=BUDGET_S,
            budget_mb=BUDGET_MB,
            to_stdout=keep_quiet,
            to_stderr=to_errors,
            environment=few_threads() | OWN | {"IPYTHONDIR": os.path.join(folder, "ipython")},
            stop=stop,
        )
        return cells.read_result(result), ending


def _ran(ending: Ending, script: Path) -> Judgement:
    if ending.how != "exited":
        return _unfinished(ending)
    exception = last_exception(ending.stderr) if ending.returncode else None
    if exception is not None:
        line = frame_in(script, exception)
        where = "" if line is None else f", from line {line.line} of your script"
        first = exception.message.partition("\n")[0]
        return Judgement("run", False, f"It fails: {exception.exception}: {first}{where}.", "")
    if ending.returncode:
        return Judgement("run", False, f"It ends with exit code {ending.returncode}.", "It must run to its end.")
    return Judgement("run", True, f"It runs to its end, in {ending.seconds:.0f} s.")


def _cell(notebook: Any, number: int) -> str:
    """Name a cell by its first line: Jupyter shows no numbers until cells have run."""
    first = notebook.cells[number - 1].source.strip().splitlines()[0]
    return f"The cell that begins with `{first}`"


def _unfinished(ending: Ending) -> Judgement:
    if ending.how == "stopped":
        return Judgement("run", False, "It was stopped before its end.", "Check again.")
    if ending.how == "too slow":
        return Judgement(
            "run", False, f"It took more than {BUDGET_S} s.", "Train no longer than the original does."
        )
    if ending.how == "too big":
        return Judgement(
            "run", False, f"It needed more than {BUDGET_MB} MiB.", "Use no more than the original does."
        )
    last = (ending.stderr.strip().splitlines() or ["it printed nothing"])[-1]
    return Judgement("run", False, f"The process ended before the last cell ({last}).", "Let every cell run.")


def leaves(solution: Path) -> list[str]:
    """Return the rules that the fix of a solution leaves with findings, as the head of its page lists them."""
    return list(read(solution).metadata.get("mystery", {}).get("leaves", ()))


def _rules(report: Mapping[str, Any], left: Sequence[str]) -> Judgement:
    told = alarms(report)
    if new := [rule for rule in told if rule not in left]:
        message = finding(report, new[0])["message"]
        return Judgement("rules", False, f"diagnose run reports {listed(new)}. {message}")
    if told:
        return Judgement("rules", True, f"diagnose run reports {listed(told)}, as it does of our fix.")
    return Judgement("rules", True, "diagnose run reports no error or warning.")


def _written(metric: str, line: int) -> Judgement:
    said = f"Line {line} prints a constant for {metric}."
    return Judgement("result", False, said, "Print the number that your script computes, as the original does.")


def _asserted(result: Mapping[str, Mapping[str, str]] | None, text: str, original: str) -> Judgement:
    if result is None:
        return Judgement("result", False, "The solution's assertions could not be run on your script.", "")
    found = next(iter([*result["broken"].values(), *result["problems"].values()]), None)
    if found is None:
        return Judgement("result", True, "All assertions of the solution hold for your fix.")
    if name := _dropped(found, text, original):
        said = f"The check reads `{name}` of the original script, and your script does not define it."
        return Judgement("result", False, said, f"Keep the name `{name}`; then the check can judge your fix.")
    if not found.startswith(cells.FAILED):
        advice = "Keep the lines that the original prints, and the names and types of its variables."
        return Judgement("result", False, f"The check could not judge your fix. {found}.", advice)
    advice = "The bug is still there, or your script no longer prints what the original does."
    whose = [f"`{name}` is of {script}" for name, script in _OF.items() if re.search(rf"\b{name}\b", found)]
    said = f"The solution's assertions do not all hold for your script. {found}."
    return Judgement("result", False, said + (f" ({listed(whose)}.)" if whose else ""), advice)


def _dropped(problem: str, text: str, original: str) -> str:
    """Return the global name of the original that the learner's script lacks and a problem is about; else ""."""
    found = re.search(r"KeyError: '(\w+)'|name '(\w+)' is not defined", problem)
    name = "" if found is None else found[1] or found[2]
    return name if name in _global_names(original) - _global_names(text) else ""


def _global_names(text: str) -> set[str]:
    symbols = symtable.symtable(text, "script.py", "exec").get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def _listed(names: set[str]) -> str:
    return listed([f"`{name}`" for name in sorted(names)])
