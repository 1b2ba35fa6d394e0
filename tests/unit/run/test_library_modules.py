"""A script gets its own modules under `diagnose run`, also where this library has imported one of that name."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.marks import exhaustive
from tests.support.side_by_side import both as both
from tests.support.side_by_side import run

ROOT = Path(__file__).resolve().parents[3]
# What the console script `diagnose` does: `python -m diagnostics` would run a `diagnostics.py` beside the script.
DIAGNOSE = [
    "-c",
    f"import sys; sys.path[0] = {str(ROOT)!r}; from diagnostics.cli.main import main; sys.exit(main())",
    "run",
]
NEVER_ZEROED = """
    import torch
    from torch import nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
    inputs = torch.randn(512, 8)
    labels = inputs[:, :3].argmax(1)
    for epoch in range(8):
        for rows in torch.randperm(512).split(32):
            loss = nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
            loss.backward()
            optimizer.step()
    """


def observed(folder, *options, script="train.py"):
    return run([*DIAGNOSE, "--output", "r.json", "--format", "json", *options, script], folder)


# Names that `diagnose run` has imported, and that neither Python nor torch has before the script's first line.
@pytest.mark.parametrize(
    "name", ["rich", *exhaustive("html", "statistics", "tomllib"), "json", *exhaustive("dataclasses", "signal")]
)
@pytest.mark.parametrize("launch", [DIAGNOSE, ["-m", "diagnostics", "run"]], ids=["diagnose", "python -m"])
def test_a_module_beside_the_script_is_the_one_that_it_gets(tmp_path, name, launch):
    (tmp_path / f"{name}.py").write_text("NAME = 'mine'")
    (tmp_path / "train.py").write_text(
        f"import {name}; print({name}.NAME, {name}.__file__)\nraise ValueError('\\udc80')"
    )
    plain = run(["train.py"], tmp_path)
    for options in (["--output", "r.html"], ["--output", "r.json"], []):
        ended = run([*launch, *options, "train.py"], tmp_path)
        assert (ended.returncode, ended.stdout) == (plain.returncode, plain.stdout)
        assert ended.stderr.startswith(plain.stderr)
    assert "surfaced at train.py:2" in ended.stderr
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["faults"] == []
    assert report["crash"]["exception"] == "ValueError"
    assert (tmp_path / "r.html").read_text().rstrip().endswith("</html>")


def test_a_module_that_is_called_torch_is_not_taken_for_pytorch(tmp_path):
    (tmp_path / "torch.py").write_text("NAME = 'mine'")
    (tmp_path / "train.py").write_text("import torch; print(torch.NAME)")
    ended = observed(tmp_path, "--max-steps", "5")
    assert (ended.returncode, ended.stdout) == (0, "mine\n")
    assert json.loads((tmp_path / "r.json").read_text())["faults"] == []


class TestAPackageOfOurName:
    def test_a_file(self, tmp_path):
        (tmp_path / "diagnostics.py").write_text("def check(): return 'mine'")
        (tmp_path / "train.py").write_text(
            "import diagnostics, pickle, sys\n"
            "print(diagnostics.check(), diagnostics.__name__, diagnostics.__file__)\n"
            "print(pickle.loads(pickle.dumps(diagnostics.check)) is diagnostics.check)\n"
            "print([name for name in sys.modules if name.startswith('diagnostics')])"
        )
        plain, ended = run(["train.py"], tmp_path), observed(tmp_path)
        assert (ended.returncode, ended.stdout) == (plain.returncode, plain.stdout)
        assert plain.stdout.startswith("mine diagnostics ")

    def test_a_package_whose_modules_have_the_names_of_ours(self, tmp_path):
        (tmp_path / "diagnostics" / "probes").mkdir(parents=True)
        (tmp_path / "diagnostics" / "__init__.py").write_text("from .report import NAME")
        (tmp_path / "diagnostics" / "report.py").write_text("NAME = 'mine'")
        (tmp_path / "diagnostics" / "probes" / "__init__.py").write_text("from ..report import NAME")
        (tmp_path / "train.py").write_text(
            "import diagnostics.probes\nfrom diagnostics import report\nprint(diagnostics.NAME, report.__file__)\n"
            "print(hasattr(diagnostics, 'watch'))\nfrom diagnostics import watching"
        )
        plain, ended = run(["train.py"], tmp_path), observed(tmp_path)
        assert (ended.returncode, ended.stdout) == (plain.returncode, plain.stdout)
        assert ended.stderr.startswith(plain.stderr)

    @pytest.mark.exhaustive
    def test_the_training_is_watched_all_the_same(self, tmp_path):
        (tmp_path / "diagnostics.py").write_text("NAME = 'mine'")
        (tmp_path / "rich.py").write_text("")
        (tmp_path / "train.py").write_text(
            textwrap.dedent(NEVER_ZEROED) + "import diagnostics, rich\nprint(diagnostics.NAME)"
        )
        ended = observed(tmp_path)
        report = json.loads((tmp_path / "r.json").read_text())
        assert (ended.returncode, ended.stdout) == (1, "mine\n")
        assert [finding["rule"] for finding in report["findings"]] == ["gradients-not-zeroed"]
        assert report["faults"] == []

    def test_a_folder_that_is_no_package_stands_behind_the_library(self, both, tmp_path):
        (tmp_path / "diagnostics").mkdir()
        plain, ended = both("import diagnostics; print(diagnostics.Report.__module__)")
        assert plain == ended == (0, "diagnostics.report.report\n", "")

    def test_the_library_itself_is_not_taken_for_the_scripts(self, tmp_path):
        """A script in the folder that the library is imported from, as in a clone of it."""
        (tmp_path / "diagnostics").symlink_to(ROOT / "diagnostics")
        (tmp_path / "train.py").write_text("import diagnostics; print(diagnostics.Report.__module__)")
        assert run(["-m", "diagnostics", "run", "train.py"], tmp_path).stdout == "diagnostics.report.report\n"


@pytest.mark.exhaustive
def test_nothing_is_imported_once_the_script_is_over(tmp_path):
    """By then the path may lead anywhere: each import is one that a script can break."""
    spy = """
        import atexit, sys
        class Spy:
            def find_spec(self, name, path=None, target=None):
                print('imported', name)
        sys.meta_path.insert(0, Spy())
        sys.path[:] = []
        atexit.register(sys.meta_path.pop, 0)  # torch imports more when it ends
        """
    (tmp_path / "train.py").write_text(textwrap.dedent(NEVER_ZEROED) + textwrap.dedent(spy))
    for output in ("r.html", "r.json", "r.txt"):
        ended = run(["-m", "diagnostics", "run", "--output", output, "train.py"], tmp_path)
        assert (ended.returncode, ended.stdout) == (1, ""), output
    (tmp_path / "train.py").write_text(textwrap.dedent(spy) + "raise ValueError('x')")
    ended = subprocess.run(
        [sys.executable, "-m", "diagnostics", "run", "train.py"],
        cwd=tmp_path, env={**os.environ, "FORCE_COLOR": "1"}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (1, "")
