"""What is done to a module when somebody imports it."""

import importlib
import importlib.util
import sys

import pytest

from diagnostics.collectors.isolation.import_hooks import after_import


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module that can be imported and has not been."""
    (tmp_path / "a_framework.py").write_text("LAYERS = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "a_framework", raising=False)
    yield "a_framework"
    sys.modules.pop("a_framework", None)


class TestAfterImport:
    def test_nothing_is_imported_and_nothing_done_until_somebody_imports_it(self, module):
        seen = []
        after_import(module, lambda found: seen.append(found.LAYERS))
        assert seen == []
        assert module not in sys.modules
        importlib.import_module(module)
        importlib.import_module(module)
        assert seen == [3]

    def test_two_may_wait_for_the_same(self, module):
        seen = []
        after_import(module, lambda _: seen.append("first"))
        after_import(module, lambda _: seen.append("second"))
        importlib.import_module(module)
        assert sorted(seen) == ["first", "second"]

    def test_who_only_asks_whether_it_is_there_does_not_use_it_up(self, module):
        seen = []
        after_import(module, lambda _: seen.append("first"))
        after_import(module, lambda _: seen.append("second"))
        assert importlib.util.find_spec(module) is not None
        assert seen == []
        importlib.import_module(module)
        assert sorted(seen) == ["first", "second"]

    def test_a_module_that_is_there_is_taken_at_once(self):
        seen = []
        after_import("json", seen.append)
        assert seen == [sys.modules["json"]]

    def test_can_be_called_off(self, module):
        seen, before = [], list(sys.meta_path)
        after_import(module, seen.append)()
        assert sys.meta_path == before
        importlib.import_module(module)
        assert seen == []

    def test_a_module_that_does_not_exist_fails_as_always(self):
        forget = after_import("no_such_framework", pytest.fail)
        with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_framework'"):
            importlib.import_module("no_such_framework")
        forget()
