from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from diagnostics.collectors.system import supported
from diagnostics.collectors.system.supported import (
    FRAMEWORKS,
    PRIVATE,
    missing_name,
    require_supported,
    unsupported,
)
from diagnostics.errors import InvalidInput

PYPROJECT = Path(__file__).resolve().parents[4] / "pyproject.toml"


@pytest.fixture
def installed(monkeypatch):
    """Pretend that a framework was imported, of which this release is installed."""

    def install(package: str, release: str) -> None:
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
        versions[package] = release

    versions: dict[str, str] = {}
    for name in FRAMEWORKS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(supported, "version", versions.__getitem__)
    return install


def test_the_least_releases_are_those_that_the_extras_require():
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    required = {one.name: one.specifier for one in map(Requirement, extras["torch"] + extras["keras"])}
    for name, framework in FRAMEWORKS.items():
        (bound,) = required[name]
        assert bound.operator == ">="
        assert Version(bound.version).release == framework.since


@pytest.mark.parametrize("release", ["3.3.3", "2.15.0", "3.6.0", "3.6.0.dev2024"])
def test_an_old_release_is_named_with_the_oldest_supported(installed, release):
    installed("keras", release)
    assert unsupported("keras") == f"Keras {release} is not supported; 3.7 or newer is"
    with pytest.raises(InvalidInput, match="is not supported"):
        require_supported("keras")


@pytest.mark.parametrize("release", ["3.7.0", "3.10.0", "4.0", "2.8.0a0+git1234", "unknown", ""])
def test_a_newer_release_or_one_that_is_not_known_is_observed(installed, release):
    installed("torch" if release.startswith("2.8") else "keras", release)
    assert unsupported("keras") is unsupported("torch") is None


@pytest.mark.parametrize("missing", range(len(PRIVATE)))
def test_a_pytorch_without_a_private_name_is_not_supported_yet(installed, missing):
    installed("torch", "3.0.0")
    torch = sys.modules["torch"]
    torch.nn = ModuleType("torch.nn")
    for number, names in enumerate(PRIVATE):
        *modules, name = names.partition(" or ")[0].split(".")
        module = torch
        for part in modules:
            module = vars(module).setdefault(part, ModuleType(part))
        if number != missing:
            setattr(module, name, None)
    path = PRIVATE[missing].partition(" or ")[0]
    assert missing_name(torch) == path
    assert (
        unsupported("torch") == f"PyTorch 3.0.0 is not supported yet: it has no torch.{path}. Upgrade this library"
    )


def test_the_framework_that_it_runs_on_counts_once_it_is_imported(installed):
    installed("transformers", "5.0.0")
    assert unsupported("transformers") is None
    installed("torch", "2.3.1+cpu")
    assert unsupported("transformers") == "PyTorch 2.3.1+cpu is not supported; 2.8 or newer is"
    assert unsupported("fastai") == unsupported("torch") is not None


def test_the_version_of_a_module_that_no_distribution_installed_is_its_own(installed, monkeypatch):
    def missing(name: str) -> str:
        raise supported.PackageNotFoundError(name)

    installed("torch", "")
    monkeypatch.setattr(supported, "version", missing)
    assert unsupported("torch") is None
    sys.modules["torch"].__version__ = "1.13.1"
    assert unsupported("torch") == "PyTorch 1.13.1 is not supported; 2.8 or newer is"


def test_diagnose_run_says_that_a_framework_is_too_old(tmp_path):
    """With a release of which nothing is there but its name and number."""
    about = tmp_path / "keras-3.3.3.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: keras\nVersion: 3.3.3\n")
    (tmp_path / "keras.py").write_text("")
    (tmp_path / "train.py").write_text("import keras\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))}
    command = [sys.executable, "-m", "diagnostics", "run", "--format", "json", "train.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    report = json.loads(done.stderr)
    assert report["stages"] == [
        {"name": "keras", "status": "not judged", "detail": "Keras 3.3.3 is not supported; 3.7 or newer is"}
    ]
    assert report["findings"] == report["faults"] == []
