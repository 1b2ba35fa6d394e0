from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import diagnostics
from diagnostics.cli.installation import damage

AGAIN = "python -m pip install --force-reinstall --no-deps training-diagnostics"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages that holds this one."""
    (tmp_path / "diagnostics").symlink_to(Path(diagnostics.__file__).parent)
    for name in ("training_diagnostics-0.1.0.dist-info", "diagnostics_endpoint-0.0.8.dist-info"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_a_sound_installation_has_no_damage(site: Path) -> None:
    assert damage(site / "diagnostics") is damage() is None


@pytest.mark.parametrize("folder", ["diagnostics-0.2.4.dist-info", "diagnostics-0.2.4-py2.7.egg-info"])
def test_names_the_foreign_package_and_what_to_do(site: Path, folder: str) -> None:
    (site / folder).mkdir()
    assert damage(site / "diagnostics") == (
        "the unrelated package diagnostics 0.2.4 is installed in the same folder and may have overwritten files "
        f"of training-diagnostics. Run: python -m pip uninstall -y diagnostics && {AGAIN}"
    )


def test_the_command_says_so_with_the_init_of_another_package(tmp_path: Path) -> None:
    package = tmp_path / "diagnostics"
    package.mkdir()
    for path in Path(diagnostics.__file__).parent.iterdir():
        if path.name != "__init__.py":
            (package / path.name).symlink_to(path)
    (package / "__init__.py").write_text("exception_hook = None\n")
    command = [sys.executable, "-P", "-c", "from diagnostics.cli.main import main; main(['rules'])"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stderr == f"diagnose: files of training-diagnostics are missing or overwritten. Run: {AGAIN}\n"
    assert "diagnose rules NAME shows a rule's page." in done.stdout
