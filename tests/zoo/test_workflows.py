"""The steps of the publishing workflows that need no GitHub, run as they are written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".github" / "workflows"


def run_step(file: str, name: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a named step as the runner's shell does, with these variables."""
    jobs: dict[str, Any] = yaml.safe_load((FOLDER / file).read_text())["jobs"]
    (script,) = (step["run"] for job in jobs.values() for step in job["steps"] if step.get("name") == name)
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=60, check=False
    )


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


def test_the_built_book_becomes_the_branch_of_the_site(tmp_path: Path) -> None:
    clone, origin = tmp_path / "clone", tmp_path / "origin"
    for arguments in (["init", "-q", "--bare", str(origin)], ["init", "-q", str(clone)]):
        git(tmp_path, *arguments)
    git(clone, "remote", "add", "origin", str(origin))
    (clone / ".gitignore").write_text("/book/_build/\n")
    pages = clone / "book/_build/html/_sources"
    pages.mkdir(parents=True)
    (clone / "book/published.toml").write_text((ROOT / "book/published.toml").read_text())
    for text in ("first", "second"):  # a second build replaces the first
        (pages / "index.md").write_text(text)
        (pages / f"{text}.md").write_text(text)
        done = run_step("book.yml", "push the built book", clone, RUNNER_TEMP=str(tmp_path), GITHUB_SHA="1234")
        assert done.returncode == 0, done.stderr
        (pages / "first.md").unlink(missing_ok=True)
    listed = git(origin, "ls-tree", "-r", "--name-only", "gh-pages").splitlines()
    assert listed == [".nojekyll", "_sources/index.md", "_sources/second.md"]
    assert git(origin, "show", "gh-pages:_sources/index.md") == "second"
    assert git(origin, "log", "--format=%s", "gh-pages") == "Publish 1234"


@pytest.mark.parametrize(
    ("tag", "dated", "addressed", "accepted"),
    [
        ("v0.2.0", True, True, True),
        ("v0.2.1", True, True, False),
        ("v0.2.0", False, True, False),
        ("v0.2.0", True, False, False),
    ],
)
def test_only_a_finished_release_is_published(
    tmp_path: Path, tag: str, dated: bool, addressed: bool, accepted: bool
) -> None:
    urls = "[project.urls]\n" if addressed else ""
    (tmp_path / "pyproject.toml").write_text(f'[project]\nversion = "0.2.0"\n{urls}')
    (tmp_path / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## 0.2.0 ({'2026-12-01' if dated else 'unreleased'})\n"
    )
    done = run_step("release.yml", "check the tag", tmp_path, GITHUB_REF_NAME=tag)
    assert (done.returncode == 0) is accepted


def test_only_the_publishing_job_may_ask_for_a_token() -> None:
    workflow = yaml.safe_load((FOLDER / "release.yml").read_text())
    assert workflow["permissions"] == {}
    granted = {name: job["permissions"] for name, job in workflow["jobs"].items()}
    assert granted == {"build": {"contents": "read"}, "publish": {"id-token": "write"}}
