"""One set of versions, wherever it is written down, and one environment, installed once."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, GROUPS = PYPROJECT["project"], PYPROJECT["dependency-groups"]
NAME = PROJECT["name"]
ABOUT = ("CHANGELOG.md", "CITATION.cff", "SECURITY.md")


def direct_dependencies() -> dict[str, Requirement]:
    """Every requirement that pyproject.toml names itself, in whatever extra or group."""
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values(), *GROUPS.values()]
    requirements = [Requirement(text) for one in lists for text in one]
    return {canonicalize_name(one.name): one for one in requirements if one.name != NAME}


def constraints() -> dict[str, str]:
    """The versions of constraints.txt, by name."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.]+", pin)] == []
    return {canonicalize_name(name): version for name, _, version in (pin.partition("==") for pin in pins)}


class TestConstraints:
    def test_pins_every_direct_dependency_at_a_version_that_pyproject_allows(self) -> None:
        pins = constraints()
        unfit = {
            name: pins.get(name)
            for name, requirement in direct_dependencies().items()
            if name not in pins or not requirement.specifier.contains(pins[name])
        }
        assert unfit == {}

    @pytest.mark.skipif(sys.platform != "linux", reason="the versions are those of Linux")
    def test_pins_all_that_is_needed_and_nothing_else(self) -> None:
        needed: dict[str, set[str]] = {}

        def need(name: str, extras: set[str]) -> None:
            known = needed.setdefault(canonicalize_name(name), set())
            if known >= extras and known:
                return
            known |= extras | {""}
            for requirement in map(Requirement, distribution(name).requires or []):
                marker = requirement.marker
                if marker is None or any(marker.evaluate({"extra": extra}) for extra in known):
                    need(requirement.name, requirement.extras)

        need(NAME, {"zoo"})
        for requirement in map(Requirement, GROUPS["book"] + GROUPS["dev"]):
            need(requirement.name, requirement.extras)
        assert set(constraints()) == set(needed) - {NAME}


class TestCondaEnvironment:
    ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text())
    PIP = next(entry["pip"] for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict))

    def test_has_the_python_of_the_constraints_and_pip(self) -> None:
        plain = [entry for entry in self.ENVIRONMENT["dependencies"] if isinstance(entry, str)]
        assert plain == ["python=3.11", "pip"]

    def test_installs_the_clone_under_the_constraints(self) -> None:
        assert [line for line in self.PIP if line.startswith("-")] == [
            "-c constraints.txt",
            "-e .[zoo]",
        ]

    def test_names_every_direct_dependency_in_the_same_version(self) -> None:
        named = dict(line.split("==") for line in self.PIP if not line.startswith("-"))
        pins = constraints()
        expected = {name: pins[name] for name in direct_dependencies()}
        assert {canonicalize_name(name): version for name, version in named.items()} == expected

    @pytest.mark.exhaustive
    def test_its_pip_part_resolves(self) -> None:
        """In this environment, which has it all: pip checks each version against each other."""
        arguments = [word for line in self.PIP for word in shlex.split(line)]
        # Without an index: were anything missing, pip would not find it elsewhere.
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-build-isolation"]
        done = subprocess.run([*command, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == f"Would install {NAME}-{PROJECT['version']}"


STEM = f"training_diagnostics-{PROJECT['version']}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return folder


class TestRelease:
    def test_the_wheel_holds_diagnostics_alone(self, built: Path) -> None:
        with zipfile.ZipFile(built / f"{STEM}-py3-none-any.whl") as archive:
            names = archive.namelist()
            metadata = f"{STEM}.dist-info"
            assert {name.partition("/")[0] for name in names} == {"diagnostics", metadata}
            assert {"diagnostics/__init__.py", "diagnostics/py.typed", f"{metadata}/licenses/LICENSE"} <= set(
                names
            )
            assert "diagnostics/README.md" not in names
            entry_points = archive.read(f"{metadata}/entry_points.txt").decode()
        assert entry_points == (
            "[console_scripts]\ndiagnose = diagnostics.cli.main:main\n\n"
            "[pytest11]\ndiagnose = diagnostics.pytest_plugin\n"
        )

    def test_the_source_distribution_holds_the_library_alone(self, built: Path) -> None:
        with tarfile.open(built / f"{STEM}.tar.gz") as archive:
            top = {name.split("/")[1] for name in archive.getnames()}
        assert top <= {"diagnostics", "pyproject.toml", "PKG-INFO", "LICENSE", ".gitignore", *ABOUT}
        assert top >= {"diagnostics", "pyproject.toml", "LICENSE", *ABOUT}

    def test_version_and_date_are_those_of_changelog_and_citation(self) -> None:
        citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
        released = re.search(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
        assert released is not None
        assert citation["version"] == released[1] == PROJECT["version"]
        assert released[2] in ("unreleased", str(citation.get("date-released")))

    def test_has_addresses_once_the_repository_has_one(self) -> None:
        repository = tomllib.loads((ROOT / "book/published.toml").read_text())["repository"]
        urls = PROJECT.get("urls", {})
        assert bool(urls) == bool(repository)
        assert all(f"/{repository}" in url for url in urls.values())


class TestContinuousIntegration:
    COMMAND = "python -m pip install nox && python -m nox -s tests"

    def test_runs_the_command_that_the_readme_gives(self) -> None:
        assert self.COMMAND in (ROOT / "README.md").read_text()
        assert f"\n{self.COMMAND} || once_more tests\n" in (ROOT / ".ci/run").read_text()

    @pytest.mark.skipif(os.name == "nt", reason="Windows knows no executable bit")
    def test_can_be_executed(self) -> None:
        assert os.access(ROOT / ".ci/run", os.X_OK)


BACKEND = '''\
"""Builds an empty editable wheel, so that an installation takes a second and no network."""
import os, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    if os.path.exists("broken"):
        raise SystemExit("the installation breaks off here")
    with open("installations", "a") as log:
        log.write("installed\\n")
    name, stem = "training-diagnostics", "training_diagnostics-0"
    with zipfile.ZipFile(os.path.join(folder, f"{stem}-py3-none-any.whl"), "w") as wheel:
        about = f"{stem}.dist-info/"
        extras = "".join(f"Provides-Extra: {extra}\\n" for extra in ("zoo", "light"))
        wheel.writestr(about + "METADATA", f"Metadata-Version: 2.1\\nName: {name}\\nVersion: 0\\n{extras}")
        wheel.writestr(about + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(about + "RECORD", "")
    return f"{stem}-py3-none-any.whl"
'''


class TestSessions:
    @pytest.fixture
    def clone(self, tmp_path: Path) -> Path:
        """The real noxfile and catalogue over a project that installs in a second."""
        for source in (
            ROOT / "noxfile.py",
            ROOT / "bugs/__init__.py",
            ROOT / "bugs/zoo/__init__.py",
            *(ROOT / "bugs/zoo/keeper").glob("*.py"),
        ):
            copy = tmp_path / source.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
        (tmp_path / "backend.py").write_text(BACKEND)
        (tmp_path / "pyproject.toml").write_text(
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
            "[dependency-groups]\nbook = []\ndev = []\n"
        )
        (tmp_path / "constraints.txt").write_text("")
        return tmp_path

    def nox(self, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "nox", *arguments]
        environment = os.environ | {"PIP_NO_INDEX": "1", "NO_COLOR": "1"}
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=environment)

    def test_the_environment_is_installed_once_until_something_changes(self, clone: Path) -> None:
        log = clone / "installations"
        for _ in range(2):
            assert self.nox(clone, "-s", "env").returncode == 0
            assert log.read_text() == "installed\n"
        (clone / "constraints.txt").write_text("numpy==2.4.6\n")
        assert self.nox(clone, "-s", "env").returncode == 0
        assert log.read_text() == "installed\n" * 2

    @pytest.mark.exhaustive
    def test_an_installation_that_breaks_off_is_begun_again(self, clone: Path) -> None:
        assert self.nox(clone, "-s", "env").returncode == 0
        (clone / "constraints.txt").write_text("numpy==2.4.6\n")
        (clone / "broken").touch()
        assert self.nox(clone, "-s", "env").returncode == 1
        (clone / "constraints.txt").write_text("")  # as it was when an installation last succeeded
        (clone / "broken").unlink()
        assert self.nox(clone, "-s", "env").returncode == 0
        assert (clone / "installations").read_text() == "installed\n" * 2

    def test_a_broken_manifest_costs_its_own_session_only(self, clone: Path) -> None:
        (clone / "bugs/04_wrong_label_count").mkdir()
        (clone / "bugs/04_wrong_label_count/exhibit.toml").write_text("id = 4\n")
        done = self.nox(clone, "-l")
        assert done.returncode == 0
        fault = "bugs/04_wrong_label_count/exhibit.toml: id: expected two digits in quotes, such as '04', got 4"
        assert f"warning: an exhibit without a session: {fault}\n" in done.stderr
        assert "- tests -> " in done.stdout
        assert "bug-04" not in done.stdout

    def test_an_attempt_that_is_not_right_yet_is_an_ordinary_result(self, clone: Path) -> None:
        """The learner reads what `bugs` says and nothing of nox; the commands that it prints are those of nox."""
        assert self.nox(clone, "-s", "env").returncode == 0
        (clone / "bugs/__main__.py").write_text(
            "import sys\nfrom bugs.zoo.keeper.spelling import command\n"
            "print(command(*sys.argv[1:]))\nsys.exit(1)\n"
        )
        done = self.nox(clone, "-s", "learn", "--", "check", "04")
        said = (done.returncode, done.stdout, done.stderr)
        assert said == (0, "python -m nox -s learn -- check 04\n", "")

    def test_a_bare_nox_lists_and_runs_nothing(self, clone: Path) -> None:
        done = self.nox(clone)
        assert done.returncode == 0
        assert "- env -> Install all that the zoo runs on, once" in done.stdout
        assert not (clone / "installations").exists()

    def test_the_list_reads_like_a_table_of_contents(self) -> None:
        listed = re.findall(r"^- (\S+)(?: \[\w+\])? -> (.+)$", self.nox(ROOT, "-l").stdout, re.MULTILINE)
        names = [name for name, _ in listed]
        bugs = [name for name in names if name.startswith("bug-")]
        fixes = [name for name in names if name.startswith("fix-")]
        assert bugs == sorted(bugs)
        assert [name[4:] for name in fixes] == [name[4:] for name in bugs]
        own = [
            "learn",
            "tests",
            "messages",
            "verify",
            "stacks",
            "trackers",
            "matrix",
            "recall",
            "scoreboard",
            "lint",
            "book",
            "pages",
        ]
        own += ["bench", "record-gpu"]
        assert names == ["env", "light", *bugs, *fixes, *own]
