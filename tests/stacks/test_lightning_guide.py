"""The guide's examples for Lightning, run as they stand on its page: the book's environment has no Lightning."""

import re
import textwrap

import lightning

from tests.stacks.lightning_programs import autoencoder
from tests.stacks.test_stacks import ROOT

PAGE = ROOT / "book" / "guide" / "your-project.md"
TAB = re.compile(r"^:::\{tab-item\} Lightning\n(.*?)^:::$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_guide_run_as_they_stand(tmp_path, monkeypatch, capsys):
    examples = [code for tab in TAB.findall(PAGE.read_text()) for code in CODE.findall(tab)]
    assert len(examples) == 2
    monkeypatch.chdir(tmp_path)
    program = autoencoder()
    names = {"module": program.module, "loader": program.data, "lightning": lightning}
    for example in examples:
        exec(compile(textwrap.dedent(example), str(PAGE), "exec"), names)
    shown = capsys.readouterr().out
    assert "examined Autoencoder with a DataLoader" in shown
    assert "watched 60 steps of Autoencoder with a Lightning Trainer" in shown
