"""Rules that an installed package brings by the entry point group `diagnostics.rules`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

from diagnostics.rules.registry import all_rules, names_of_own

ROOT = Path(__file__).resolve().parents[2]
RULE = '''
    from diagnostics.engine.finding import Finding
    from diagnostics.engine.rule import Rule, check
    from diagnostics.facts.crash import CrashFacts


    class LicenseExpired(Rule):
        """The license of the data loader has run out."""

        stage = "data"
        severity = "error"
        causes = ("labels-missing",)

        @check
        def from_crash(self, crash: CrashFacts) -> Finding | None:
            if "license" not in crash.message:
                return None
            return self.found("The license server refused.", fix=("renew the license", "use another loader"))
    '''
TEXT = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nRuntimeError: no license'


def install(folder: Path, entry: str, module: str = RULE) -> None:
    """Put a package with one entry point where Python finds it, as pip does."""
    (folder / "loader_rules.py").write_text(textwrap.dedent(module))
    metadata = folder / "loader_rules-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: loader-rules\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[diagnostics.rules]\nloader = {entry}\n")


def diagnose(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "diagnostics", *arguments],
        input=TEXT, capture_output=True, text=True, cwd=folder, timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))},
    )  # fmt: skip


def explained(folder: Path) -> dict:
    return json.loads(diagnose(folder, "explain", "-", "--format", "json").stdout)


def test_a_rule_of_an_installed_package_is_evaluated_listed_and_ignored(tmp_path):
    install(tmp_path, "loader_rules:LicenseExpired")
    report = explained(tmp_path)
    assert [(f["rule"], f["fix"], f["alternatives"]) for f in report["findings"]] == [
        ("license-expired", "renew the license", ["use another loader"])
    ]
    assert report["faults"] == []
    listed = json.loads(diagnose(tmp_path, "rules", "--format", "json").stdout)
    assert {"rule": "license-expired", "stage": "data", "severity": "error"}.items() <= {
        key: value for entry in listed if entry["rule"] == "license-expired" for key, value in entry.items()
    }.items()
    (tmp_path / "pyproject.toml").write_text('[tool.diagnostics.ignore]\nlicense-expired = "it is paid"\n')
    report = explained(tmp_path)
    assert (report["findings"], report["ignored"]) == ([], {"license-expired": "it is paid"})


def test_an_entry_point_may_name_a_module(tmp_path):
    install(tmp_path, "loader_rules")
    assert [finding["rule"] for finding in explained(tmp_path)["findings"]] == ["license-expired"]


def test_what_cannot_be_used_is_a_line_in_the_report(tmp_path):
    install(tmp_path, "loader_rules:Missing")
    assert explained(tmp_path)["faults"] == [
        "the rules of loader (loader_rules:Missing) are left out: AttributeError: module 'loader_rules' has no "
        "attribute 'Missing'"
    ]


def test_a_name_that_is_taken_is_refused(tmp_path):
    install(
        tmp_path, "loader_rules", RULE.replace('stage = "data"', 'stage = "data"\n        name = "dead-units"')
    )
    assert explained(tmp_path)["faults"] == [
        "the rules of loader (loader_rules) are left out: there is a rule dead-units already"
    ]


def test_the_names_of_rules_are_those_of_their_files():
    own = {rule.name for rule in all_rules() if type(rule).__module__.startswith("diagnostics.rules.")}
    assert names_of_own() == own


def test_explaining_a_text_imports_neither_numpy_nor_rules_that_judge_no_crash(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.diagnostics.ignore]\ndead-units = "few, and known"\n')
    text = "IndexError: Target 10 is out of bounds."
    code = f"import sys, diagnostics; print(diagnostics.explain({text!r}).findings[0].rule, *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    rule, *modules = done.stdout.split()
    assert rule == "labels-out-of-range"
    assert not {"numpy", "diagnostics.rules.model.dead_units"} & set(modules)
