"""`probe` inside a model: it returns what it is given, and is heard while someone listens."""

import subprocess
import sys

import pytest
import torch

from diagnostics import tensor_probe
from diagnostics.tensor_probe import listening, probe


def never():
    return False


class TestProbe:
    def test_returns_the_very_object(self):
        tensor = torch.ones(2)
        assert probe(tensor, "here") is tensor
        with listening(lambda value, name: None, never):
            assert probe(tensor, "here") is tensor

    def test_is_heard_by_all_who_listen_and_only_while_they_do(self):
        first, second = [], []
        probe(0, "before")
        with listening(lambda value, name: first.append((value, name)), never):
            probe(1, "one")
            with listening(lambda value, name: second.append((value, name)), never):
                probe(2, "both")
            probe(3, "one again")
        probe(4, "after")
        assert first == [(1, "one"), (2, "both"), (3, "one again")]
        assert second == [(2, "both")]

    def test_nothing_listens_after_an_exception(self):
        with pytest.raises(KeyError), listening(lambda value, name: None, never):
            raise KeyError
        assert not tensor_probe._on

    def test_torch_compile_leaves_it_out_and_does_not_break_its_graph(self):
        def model(x):
            return probe(x * 2, "doubled") + 1

        compiled = torch.compile(model, backend="eager", fullgraph=True)
        heard = []
        x = torch.arange(3.0)
        for _ in range(12):  # more often than torch.compile is willing to recompile
            assert torch.equal(compiled(x), x * 2 + 1)
            with listening(lambda value, name: heard.append(name), torch.compiler.is_compiling):
                assert torch.equal(compiled(x), x * 2 + 1)
        assert heard == []

    def test_needs_no_framework(self):
        code = (
            "import diagnostics.tensor_probe as t, sys; assert t.probe(3, 'x') == 3; assert not {'torch', "
            "'tensorflow'} & set(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
