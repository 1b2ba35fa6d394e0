"""The zoo's sessions: `nox -l` lists them, `nox -s bug-01` opens the first exhibit.

One environment, that of the session `env`, serves all the others: they require it and run its Python. The
exhibits' sessions are made from their manifests, bugs/NN_name/exhibit.toml.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import time
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from bugs.zoo.keeper.catalogue import Exhibit, survey  # noqa: E402
from bugs.zoo.keeper.spelling import VARIABLE  # noqa: E402

PYTHON = "3.11"  # the one that constraints.txt was made with
SHOWN = (
    "*.md",
    "book/*.md",
    "book/[cegm]*/*.md",
    "book/mysteries/*.py",
    "bugs/[0-9]*/*.py",
    "solutions/*/*",
)  # in the book
SHOWN_COLUMNS = 88
FRAMEWORKS = {"torch": "PyTorch", "keras": "Keras"}

# Some containers forbid Python to keep what it compiles. Hundreds of processes here import the same frameworks,
# and to compile transformers again takes each of them longer than all else that importing it does.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

STAMP = "bug-zoo-installed"
# The environment of the learner's sessions: the light one where that is the only one.
HOME = "env"
if (ROOT / ".nox" / "light" / STAMP).is_file() and not (ROOT / ".nox" / "env" / STAMP).is_file():
    HOME = "light"
LOUD = logging.getLogger("nox").level
if "learn" in sys.argv[: sys.argv.index("--") if "--" in sys.argv else None]:
    logging.getLogger("nox").setLevel(logging.CRITICAL)  # what a learner reads is what `bugs` says

# Nox looks for uv whenever an environment runs something, and reports each time that it found none.
logging.getLogger("nox").addFilter(lambda record: record.getMessage() != "uv binary not found.")

nox.needs_version = ">=2025.2.9"
nox.options.sessions = []  # a bare `nox` lists what there is, and runs nothing
nox.options.error_on_missing_interpreters = True


def _install(
    session: nox.Session, files: tuple[str, ...], notice: str, *arguments: str, alone: str | None = None
) -> None:
    """Install into a session's environment, unless the files that pin the versions are those of the last time.

    What the file `alone` requires is installed without what it requires itself.
    """
    stamp = Path(session.virtualenv.location) / STAMP
    wanted = hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in files)).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    logging.getLogger("nox").setLevel(LOUD)
    if not stamp.exists():
        session.log(notice)
    stamp.unlink(missing_ok=True)  # an installation that is interrupted counts as none
    started = time.monotonic()
    # Python compiles what is imported when it is, a small part: to compile all takes a minute.
    session.install("--no-compile", *arguments, silent=False)
    if alone is not None:
        session.install("--no-compile", "--no-deps", "-r", alone, silent=False)
    stamp.write_text(wanted)
    session.log(f"Installed in {(time.monotonic() - started) / 60:.1f} minutes.")


@nox.session(python=PYTHON, venv_backend="virtualenv", reuse_venv=True)
def env(session: nox.Session) -> None:
    """Install all that the zoo runs on, once; the other sessions do it by themselves."""
    notice = (
        "Installing PyTorch, TensorFlow and what else the zoo runs on, once: about 5 GB of disk, twice that "
        "where pip takes PyTorch with CUDA along; 3 to 20 minutes, as the network allows."
    )
    # Resolved by nox, since pip takes a group from 25.1 on only, and the pip of a virtualenv may be older.
    groups = nox.project.dependency_groups(nox.project.load_toml(ROOT / "pyproject.toml"), "book", "dev")
    packages = ("-c", "constraints.txt", "-e", ".[zoo]", *groups)
    _install(session, ("pyproject.toml", "constraints.txt"), notice, *packages)


@nox.session(python=PYTHON, venv_backend="virtualenv", reuse_venv=True, default=False)
def light(session: nox.Session) -> None:
    """Install what chapters and PyTorch exhibits need, without TensorFlow: under 2 GB; `learn` then uses it."""
    notice = (
        "Installing PyTorch, scikit-learn, Transformers and Jupyter, once: 1.6 GB of disk, several GB more where "
        "pip takes PyTorch with CUDA along."
    )
    packages = ("-c", "constraints.txt", "-e", ".[light]", "notebook>=7")
    _install(session, ("pyproject.toml", "constraints.txt"), notice, *packages)


def _zoo_python(session: nox.Session, home: str = "env") -> str:
    folder = "Scripts" if os.name == "nt" else "bin"
    return str(session.cache_dir.parent / home / folder / "python")


def _python(session: nox.Session, *arguments: str, home: str = "env", **options: object) -> None:
    """Run an environment's Python; on Ctrl-C give it the time to end its own children."""
    python = _zoo_python(session, home)
    session.run(python, *arguments, external=True, stderr=None, interrupt_timeout=5, **options)


def _bugs(session: nox.Session, *arguments: str, home: str, **options: object) -> None:
    """Run a command of `bugs` that prints further ones as this terminal takes them."""
    nox_itself = "python -m nox" if Path(sys.argv[0]).stem == "__main__" else "nox"
    _python(session, "-m", "bugs", *arguments, home=home, env={VARIABLE: f"{nox_itself} -s learn --"}, **options)


def _pytest_arguments(session: nox.Session) -> list[str]:
    """Return the arguments after --; --all adds the tests that are left out otherwise."""
    given = [argument for argument in session.posargs if argument != "--all"]
    return [*given, "-m", ""] if "--all" in session.posargs else given


def _cage(exhibit: Exhibit, *, solution: bool) -> None:
    home = HOME if exhibit.framework == "torch" else "env"

    def run(session: nox.Session) -> None:
        twin = ["--solution"] if solution else []
        _bugs(session, "run", exhibit.id, *twin, *session.posargs, home=home)

    # A title may name the cause, which is for the reader to find.
    seen = f"{exhibit.headline} ({FRAMEWORKS[exhibit.framework]})"
    run.__doc__ = f"{exhibit.title} (fixed)" if solution else seen
    name, tag = (f"fix-{exhibit.id}", "fix") if solution else (f"bug-{exhibit.id}", "bug")
    nox.session(name=name, tags=[tag], requires=[home], venv_backend="none", default=False)(run)


exhibits, broken = survey(ROOT)
for fault in broken:
    print(f"warning: an exhibit without a session: {fault}", file=sys.stderr)
for exhibit in exhibits.values():
    _cage(exhibit, solution=False)
for exhibit in exhibits.values():
    _cage(exhibit, solution=True)


@nox.session(requires=[HOME], venv_backend="none", default=False)
def learn(session: nox.Session) -> None:
    """Fix an exhibit yourself: `-- try 04`, `-- check 04`, `-- hint 04`, `-- progress`, `-- next`, others."""
    _bugs(
        session,
        *(session.posargs or ["next"]),
        home=HOME,
        log=False,
        success_codes=range(256),  # "not fixed yet" is an ordinary result; scripts call `python -m bugs`
    )


@nox.session(requires=["env"], venv_backend="none", default=False)
def tests(session: nox.Session) -> None:
    """Run the tests, 20 minutes on two cores; arguments after -- go to pytest, --all adds the exhaustive."""
    _python(session, "-m", "pytest", "-n", "2", "--dist", "worksteal", *_pytest_arguments(session))


@nox.session(requires=["env"], venv_backend="none", default=False)
def messages(session: nox.Session) -> None:
    """Rewrite tests/unit/rules/messages, which hold what the rules say in their tests; read the diff."""
    _python(session, "-m", "pytest", "-q", "tests/unit/rules", "--update-messages", *session.posargs)


@nox.session(requires=["env"], venv_backend="none", default=False)
def verify(session: nox.Session) -> None:
    """Open every exhibit, both scripts, once: each must do as declared (arguments: `python -m bugs verify -h`)."""
    _python(session, "-m", "bugs", "verify", *session.posargs)


@nox.session(python=PYTHON, venv_backend="virtualenv", reuse_venv=True, default=False)
def stacks(session: nox.Session) -> None:
    """Try `diagnose run` on Lightning, TRL, PEFT, skorch, fastai and others, in an environment of their own."""
    requirements, fastai = "tests/stacks/requirements.txt", "tests/stacks/fastai.txt"
    _install(
        session,
        ("pyproject.toml", "constraints.txt", requirements, fastai),
        "Installing the stacks, once: about 2 GB of disk, 2 to 10 minutes.",
        *("-c", "constraints.txt", "-r", requirements, "-e", "."),
        alone=fastai,
    )
    # Not tests/conftest.py, which is for the zoo's own environment.
    session.run(
        *("python", "-m", "pytest", "-n", "2", "--dist", "worksteal", "--confcutdir", "tests/stacks"),
        *("tests/stacks", *_pytest_arguments(session)),
        interrupt_timeout=5,
    )


@nox.session(python=PYTHON, venv_backend="virtualenv", reuse_venv=True, default=False)
def trackers(session: nox.Session) -> None:
    """Log to TensorBoard, Weights & Biases and MLflow, offline, and read it back."""
    requirements = "tests/trackers/requirements.txt"
    notice = "Installing the trackers and PyTorch, once: about 1 GB of disk, 1 to 5 minutes."
    _install(session, ("pyproject.toml", requirements), notice, "-r", requirements, "-e", ".")
    session.run(
        *("python", "-m", "pytest", "--confcutdir", "tests/trackers", "tests/trackers"),
        *_pytest_arguments(session),
        interrupt_timeout=5,
    )


@nox.session(requires=["env"], venv_backend="none", default=False)
def matrix(session: nox.Session) -> None:
    """Try the wheel with the lowest and newest frameworks, and with none (-- --record keeps the results)."""
    _python(session, "tests/matrix/measure.py", *session.posargs)


@nox.session(requires=["env"], venv_backend="none", default=False)
def recall(session: nox.Session) -> None:
    """Count the bugs that `diagnose run` names, and the healthy programs that it alarms."""
    _python(session, "tests/recall/measure.py", *session.posargs)


@nox.session(python=PYTHON, venv_backend="virtualenv", reuse_venv=True, default=False)
def scoreboard(session: nox.Session) -> None:
    """Ask other tools what they say of every exhibit, broken and repaired; --record keeps it for the book."""
    requirements = "tests/scoreboard/requirements.txt"
    _install(
        session,
        ("pyproject.toml", "constraints.txt", requirements),
        "Installing the zoo once more, with the tools: about 5 GB of disk, 3 to 20 minutes.",
        *("-c", "constraints.txt", "-r", requirements, "-e", ".[zoo]"),
    )
    session.run("python", "-m", "tests.scoreboard.measure", *session.posargs, interrupt_timeout=5)


@nox.session(requires=["env"], venv_backend="none", default=False)
def lint(session: nox.Session) -> None:
    """Check style and types: ruff on everything, mypy on diagnostics and tools."""
    _python(session, "-m", "ruff", "check", ".")
    _python(session, "-m", "ruff", "format", "--check", ".")
    # Code that the book shows is narrower, so that it fits on a page.
    shown = [str(path.relative_to(ROOT)) for place in SHOWN for path in sorted(ROOT.glob(place))]
    narrow = ("--line-length", str(SHOWN_COLUMNS), "--config", "format.exclude=[]")
    _python(session, "-m", "ruff", "format", "--check", *narrow, *shown)
    _python(session, "-m", "mypy")


@nox.session(requires=["env"], venv_backend="none", default=False)
def book(session: nox.Session) -> None:
    """Run every notebook and build the book into book/_build."""
    _python(session, "book/build.py", *session.posargs)


@nox.session(python=PYTHON, venv_backend="virtualenv", reuse_venv=True, requires=["env"], default=False)
def pages(session: nox.Session) -> None:
    """Open every page of the built book in a headless Chromium (-- --all: each for accessibility)."""
    requirements = "tests/pages/requirements.txt"
    notice = "Installing Playwright, once: 200 MB of disk, a minute. The browser is the system's."
    _install(session, ("constraints.txt", requirements), notice, "-c", "constraints.txt", "-r", requirements)
    # Not tests/conftest.py, which leaves these tests out. The scripts that they run need the zoo's environment.
    session.run(
        *("python", "-m", "pytest", "-n", "2", "--dist", "worksteal", "--confcutdir", "tests/pages"),
        *("tests/pages", *_pytest_arguments(session)),
        env={"BUG_ZOO_PYTHON": str(ROOT / _zoo_python(session))},  # some start it in a folder elsewhere
        interrupt_timeout=5,
    )


@nox.session(requires=["env"], venv_backend="none", default=False)
def bench(session: nox.Session) -> None:
    """Measure what the library and the runner cost, as ratios."""
    for benchmark in sorted(ROOT.glob("tests/benchmarks/*.py")):
        _python(session, str(benchmark.relative_to(ROOT)), *session.posargs)


@nox.session(name="record-gpu", requires=["env"], venv_backend="none", default=False)
def record_gpu(session: nox.Session) -> None:
    """Run exhibits 03 and 07 on a real card, and write down what happened, for the book."""
    _python(session, "-m", "bugs.zoo.keeper.recording")
