"""Every import of the library goes down: from commands to facts, and collectors know neither rules nor reports."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[2] / "diagnostics"
LAYERS = ("cli", "run", "api", "report", "collectors", "taps", "rules", "engine", "text", "facts")
ISOLATION = "diagnostics.collectors.isolation"  # of the collectors, which `taps` stand on
ROOT_MODULES = {  # each stands in the place of the layer that it names, or below all of them
    "__main__": "cli",
    "__init__": "cli",
    "pytest_plugin": "cli",
    "config": "report",
    "failed_batch": None,
    "fixed_batch": None,
    "errors": None,
    "launch": None,
    "tensor_probe": None,
}
APART = {("collectors", "rules"), ("collectors", "report"), ("taps", "rules"), ("taps", "facts")}
FRAMEWORKS = {"torch", "tensorflow", "keras", "transformers", "datasets", "accelerate"}
FRAMEWORKS |= {"lightning", "pytorch_lightning"}
MODULES = sorted(LIBRARY.rglob("*.py"))


def rank(layer: str | None) -> int:
    return len(LAYERS) if layer is None else LAYERS.index(layer)


def layer_of(module: tuple[str, ...]) -> str | None:
    """Return the layer of a module by its path under the package: ("rules", "data", "class_imbalance")."""
    first = module[0] if module else "__init__"
    return first if first in LAYERS else ROOT_MODULES[first]


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Yield line and absolute name of each import, wherever in the file it stands."""
    package = ("diagnostics", *file.relative_to(LIBRARY).parent.parts)
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            origin = ".".join((*base, *([node.module] if node.module else [])))
            # The last word may be a module or what it defines; the layer is the same.
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def test_every_module_has_its_layer():
    assert {file.stem for file in LIBRARY.glob("*.py")} == set(ROOT_MODULES)
    assert {file.parent.name for file in LIBRARY.glob("*/__init__.py")} == set(LAYERS)


@pytest.mark.parametrize("layer", [*LAYERS, None], ids=str)
def test_no_import_goes_up(layer):
    wrong = []
    for file in MODULES:
        path = file.relative_to(LIBRARY).with_suffix("").parts
        if layer_of(path) != layer or path == ("__init__",):
            continue
        for line, name in imports(file):
            top, *rest = name.split(".")
            if top != "diagnostics" or not rest or rest[0] not in (*LAYERS, *ROOT_MODULES):
                continue
            imported = layer_of(tuple(rest))
            if layer == "taps" and name.startswith(ISOLATION):
                continue
            if rank(imported) < rank(layer) or (layer, imported) in APART:
                wrong.append(f"{'/'.join(path)}:{line} imports {name}")
    assert wrong == []


@pytest.mark.parametrize("layer", ["facts", "text", "engine", "rules"])
def test_rules_and_what_they_stand_on_import_no_framework(layer):
    files = (LIBRARY / layer).rglob("*.py")
    found = [f"{file}: {name}" for file in files for _, name in imports(file) if name.split(".")[0] in FRAMEWORKS]
    assert found == []


@functools.cache
def needed(file: Path) -> set[str]:
    """Return the names that a module imports when it is imported itself: not those for types, nor in functions."""
    tree = ast.parse(file.read_text())
    lazy = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    lines = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt) and id(node) not in lazy}
    return {name for line, name in imports(file) if line in lines}


def files_of(name: str) -> list[Path]:
    """Return the files of the library that an import of this name reads: the module, and its packages."""
    parts = name.split(".")[1:] if name.split(".")[0] == "diagnostics" else []
    paths = [LIBRARY.joinpath(*parts[:count]) for count in range(1, len(parts) + 1)]
    return [file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]


def test_what_observes_keras_on_tensorflow_imports_no_pytorch():
    """PyTorch takes more than a second to import, in a program that does not use it."""
    keras = LIBRARY / "collectors" / "keras"
    waiting = [file for file in keras.rglob("*.py") if not file.stem.startswith("torch_")]
    assert len(waiting) > 30
    reached: dict[Path, Path | None] = dict.fromkeys(waiting)
    while waiting:
        file = waiting.pop()
        names = needed(file)
        way = [file]
        while (before := reached[way[-1]]) is not None:
            way.append(before)
        assert "torch" not in {name.split(".")[0] for name in names}, [str(step) for step in way]
        for found in {found for name in names for found in files_of(name)} - set(reached):
            reached[found] = file
            waiting.append(found)


def module_of(name: str) -> Path | None:
    """Return the file of the module that an imported name is, or is defined in; None outside the library."""
    found = files_of(name)
    return found[-1] if found else None


def cycles(imported: dict[Path, set[str]]) -> set[frozenset[str]]:
    """Return each largest set of modules that import each other, directly or through others of the set."""
    graph = {file: {module for name in names if (module := module_of(name))} for file, names in imported.items()}

    def reachable(start: Path) -> set[Path]:
        seen: set[Path] = set()
        waiting = [start]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen

    reached = {file: reachable(file) for file in graph}
    groups = {frozenset(other for other in reached[file] if file in reached[other]) for file in graph}
    named = {frozenset(file.relative_to(LIBRARY).with_suffix("").as_posix() for file in group) for group in groups}
    return named - {frozenset()}


def test_no_modules_import_each_other():
    assert cycles({file: needed(file) for file in MODULES}) == set()


HIDDEN_CYCLES = {  # by an import in a function or for types alone; none is to be added
    frozenset(("report/overfit", "report/html/overfit")),  # drawing takes long to import
    frozenset(f"collectors/pytorch/watch/record/calls/{name}" for name in ("order", "script_calls")),
    frozenset(  # a backend's own module is imported where Keras runs on it
        f"collectors/keras/examine/{name}" for name in ("drawn_batches", "tf_step", "torch_step")
    ),
}


def test_no_further_cycle_is_hidden_in_a_function():
    assert cycles({file: {name for _, name in imports(file)} for file in MODULES}) == HIDDEN_CYCLES
