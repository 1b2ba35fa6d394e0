"""The stacks that people train with, under `diagnose run`: `nox -s stacks` runs this in their own environment.

A program in `healthy` trains right and must get a clean report. Its variants in `broken.toml` have a bug each.
"""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.recall.cutting import CUTS, cut
from tests.side_effects.harness import compare

ROOT = Path(__file__).resolve().parents[2]
HEALTHY = sorted(Path(__file__).parent.glob("healthy/*.py"))
VARIANTS = tomllib.loads((Path(__file__).parent / "broken.toml").read_text())["variant"]
RULES = {path.stem.replace("_", "-") for path in ROOT.glob("diagnostics/rules/**/*.py")}
CUT_SAMPLE = 21  # one cut program in so many is run every time
SECONDS = 300  # for one child process; each takes a few seconds, and most of them for imports


ENVIRONMENT = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
LAUNCHER = ("RANK", "WORLD_SIZE", "KERAS_BACKEND")


def report_on(script, folder):
    """Run a script under `diagnose run` in a child process, in a folder of its own; return the JSON report."""
    report = folder / "report.json"
    (folder / "work").mkdir()
    inherited = {name: value for name, value in os.environ.items() if name not in LAUNCHER}
    ended = subprocess.run(
        [sys.executable, "-m", "diagnostics", "run", "--format", "json", "--output", str(report), str(script)],
        cwd=folder / "work",
        env={**inherited, **ENVIRONMENT, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert report.exists(), ended.stderr
    return json.loads(report.read_text())


def named(findings, *, notes=True):
    """Yield the rules of all findings, those that follow from others included."""
    for finding in findings:
        if notes or finding["severity"] != "note":
            yield finding["rule"]
        yield from named(finding["consequences"], notes=notes)


def fixes_of(findings):
    """Yield what the findings, those that follow from others included, say is to be changed."""
    for finding in findings:
        yield from (finding["fix"], *finding["alternatives"])
        yield from fixes_of(finding["consequences"])


def told(report):
    """Return a report in short, for a failing test."""
    findings = [f"{f['severity']}: {f['rule']}: {f['message']}" for f in report["findings"]]
    stages = [f"{stage['name']}: {stage['status']}: {stage['detail']}" for stage in report["stages"]]
    return "\n".join([*findings, *stages, *report["faults"]])


def variant_of(variant):
    """Return the source of a broken variant: the healthy program with a few of its lines changed."""
    source = (Path(__file__).parent / "healthy" / f"{variant['script']}.py").read_text()
    for old, new in variant["change"]:
        assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {variant['script']}.py"
        source = source.replace(old, new)
    return source


@pytest.mark.parametrize("script", HEALTHY, ids=lambda path: path.stem)
def test_healthy_program_gets_a_clean_report_and_the_same_results(script):
    comparison = compare(script, environment=ENVIRONMENT, timeout=SECONDS)
    assert comparison.plain.exit_code == 0, comparison.plain.stderr
    assert comparison.differences == []
    assert comparison.alarms == []
    assert comparison.observed.report["ok"], told(comparison.observed.report)


def cut_short():
    """Yield every program with every length that it can be cut to, most of them marked exhaustive."""
    sources = {script: script.read_text() for script in HEALTHY}
    cases = [(script, length) for script in HEALTHY for length in CUTS if cut(sources[script], length) is not None]
    for number, (script, length) in enumerate(cases):
        marks = () if number % CUT_SAMPLE == 0 else pytest.mark.exhaustive
        yield pytest.param(script, length, id=f"{script.stem}-{length}", marks=marks)


@pytest.mark.parametrize(("script", "length"), cut_short())
def test_healthy_program_that_ends_early_is_not_alarmed(script, length, tmp_path):
    shorter = tmp_path / script.name
    shorter.write_text(cut(script.read_text(), length))
    report = report_on(shorter, tmp_path)
    assert report["faults"] == []
    if report["exit_code"]:  # such as a metric of an evaluation that never ran
        plain = subprocess.run([sys.executable, str(shorter)], cwd=tmp_path, capture_output=True, timeout=SECONDS)
        assert plain.returncode == report["exit_code"]
        pytest.skip("cut short, it fails by itself")
    assert list(named(report["findings"], notes=False)) == [], told(report)


@pytest.mark.exhaustive
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: f"{variant['script']}-{variant['name']}")
def test_broken_variant_is_named_unless_it_is_a_known_miss(variant, tmp_path):
    script = tmp_path / f"{variant['script']}_{variant['name']}.py"
    script.write_text(variant_of(variant))
    report = report_on(script, tmp_path)
    assert report["faults"] == []
    missing = set(variant["rules"]) - set(named(report["findings"]))
    if "missed" in variant:
        assert missing, f"{variant['rules']} are named now: delete `missed` of this variant in broken.toml"
    else:
        assert not missing, told(report)
        fixes = "\n".join(fixes_of(report["findings"]))
        for words in variant.get("fix", []):
            assert words in fixes, fixes
        if "get_peft_model" in script.read_text() or "peft_config" in script.read_text():
            assert "requires_grad_(True)" not in fixes, "the base model must stay frozen"


def test_every_variant_expects_rules_that_exist_and_changes_its_program():
    for variant in VARIANTS:
        assert set(variant["rules"]) <= RULES, variant["name"]
        assert variant["rules"] or "missed" in variant, f"{variant['name']} expects nothing"
        compile(variant_of(variant), variant["name"], "exec")


def test_every_program_has_two_broken_variants_or_more():
    for script in HEALTHY:
        assert sum(variant["script"] == script.stem for variant in VARIANTS) >= 2, script.stem
