"""What autograd saved is read in one place: `node._saved_self` may run a hook of the script's."""

import ast
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[2] / "diagnostics"
READER = LIBRARY / "collectors/pytorch/saved_tensors.py"
PREFIXES = ("_saved_", "_raw_saved_", "saved_tensors", "saved_variables")


def reads(source: str) -> list[str]:
    """Return the names of attributes of nodes that a module reads, by `getattr` too."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr.startswith(PREFIXES) and "hooks" not in node.attr:
            found.append(node.attr)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(PREFIXES):
            found.append(node.value)
    return found


def test_one_module_alone_reads_what_autograd_saved():
    found = {file for file in LIBRARY.rglob("*.py") if reads(file.read_text(encoding="utf-8"))}
    assert found == {READER}


def test_each_way_of_reading_is_found():
    ways = ("node._saved_self", "getattr(node, '_saved_' + name)", "node.saved_tensors", "f'_raw_saved_{name}'")
    assert [bool(reads(way)) for way in ways] == [True] * len(ways)
