"""Names what differs between two JSON reports."""

import copy
import json

import pytest

from diagnostics.cli.main import main
from diagnostics.report.diff import diff_reports

from .test_schema import WHOLE

WRITTEN = json.loads(WHOLE.to_json())


@pytest.fixture
def diff(tmp_path):
    def compare(change, before=lambda report, training: None):
        for name, edit in (("a.json", before), ("b.json", lambda r, t: (before(r, t), change(r, t)))):
            report = copy.deepcopy(WRITTEN)
            edit(report, report["fingerprint"]["trainings"][0])
            (tmp_path / name).write_text(json.dumps(report))
        return diff_reports(tmp_path / "a.json", tmp_path / "b.json")

    return compare


def test_the_same_report_has_no_difference(diff):
    assert diff(lambda report, training: None).verdict == "No difference."


def test_another_version_explains_the_losses(diff):
    def change(report, training):
        report["fingerprint"]["environment"]["Python"] = "3.11.9"
        training["losses"][0] = 0.8

    found = diff(change)
    assert found.verdict == (
        "The runs differ in one version or part of the environment (Python: 3.13.1 → 3.11.9). The losses may "
        "follow from it."
    )
    assert [one.kind for one in found.differences] == ["version or environment", "first step that differs"]


def test_a_seed_without_effect_does_not_count(diff):
    assert diff(lambda report, training: training["seeds"].update({"seed of torch": 9})).differences == ()


def test_a_seed_does_not_count_where_a_setting_explains_the_losses(diff):
    def change(report, training):
        training["seeds"]["seed of torch"] = 2**60
        training["settings"]["lr"] = 0.2
        training["losses"][0] = 0.8

    assert diff(change).verdict == (
        "The runs differ in one setting (lr: 0.1 → 0.2). The losses may follow from it."
    )


def test_another_optimizer_is_one_difference_and_not_all_of_its_settings(diff):
    def change(report, training):
        training["settings"] = {"optimizer": "Adam", "lr": 0.1, "betas": "(0.9, 0.999)"}

    found = diff(change, lambda report, training: training["settings"].update(optimizer="SGD", momentum=0.9))
    assert [(one.name, one.first, one.second) for one in found.differences if one.kind == "setting"] == [
        ("optimizer", "SGD", "Adam")
    ]


def test_a_schedule_is_a_setting(diff):
    found = diff(lambda report, training: training.update(learning_rates=[0.1, 0.05]))
    assert [(one.kind, one.name, one.first) for one in found.differences] == [
        ("setting", "learning rate of step 1", "0.1")
    ]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("02 03 01", "the 3 rows of the first batch are the same, in another order from step 0 on"),
        ("02 04 05", "1 of the 5 rows of the first batch occur in both runs, in another order"),
        ("01 02 04", "1 of the 3 rows of the first batch differ, from step 0 on"),
        ("07 08 09", "no row of the first batch occurs in both runs: other data, or other random changes to it"),
    ],
)
def test_rows_and_their_order_are_told_apart(diff, rows, said):
    found = diff(
        lambda report, training: training.update(rows={"0": rows}),
        lambda report, training: training.update(rows={"0": "01 02 03"}),
    )
    assert [one.first for one in found.differences] == [said]


def test_rounding_is_called_rounding(diff):
    (found,) = diff(lambda report, training: training.update(losses=[0.7000001, "nan"])).differences
    assert (found.first, found.second) == ("loss 0.7", "0.7000001, which rounding can explain")


def test_findings_that_are_new_or_gone(diff):
    def change(report, training):
        report["findings"][0]["rule"] = "constant-inputs"
        report["not_applicable"] = [*report["not_applicable"], "dead-units"]

    found = [(one.name, one.first, one.second) for one in diff(change).differences]
    assert found == [
        ("dead-units", "warning", "could not be checked"),
        ("constant-inputs", "not reported", "warning"),
    ]


def test_a_report_without_a_training_is_compared_by_its_findings(diff):
    found = diff(lambda report, training: report.update(fingerprint=None))
    assert found.differences == ()
    assert found.notes == ("b.json holds no fingerprint of a training, so only the findings are compared.",)


class TestCommand:
    @pytest.fixture
    def files(self, tmp_path):
        other = copy.deepcopy(WRITTEN)
        other["fingerprint"]["trainings"][0]["settings"]["lr"] = 0.2
        for name, report in (("a.json", WRITTEN), ("b.json", other)):
            (tmp_path / name).write_text(json.dumps(report))
        return str(tmp_path / "a.json"), str(tmp_path / "b.json")

    def test_exits_as_diff_does(self, files, capsys):
        a, b = files
        assert [main(["diff", a, a]), main(["diff", a, b]), main(["diff", a, a + "x"])] == [0, 1, 2]
        assert "a.jsonx cannot be read: No such file or directory." in capsys.readouterr().err

    def test_formats(self, files, tmp_path, capsys):
        assert main(["diff", *files, "--format", "markdown"]) == 1
        assert "| setting | lr | 0.1 | 0.2 |" in capsys.readouterr().out
        assert main(["diff", *files, "--output", str(tmp_path / "found.json")]) == 1
        (difference,) = json.loads((tmp_path / "found.json").read_text())["differences"]
        assert difference == {"kind": "setting", "name": "lr", "first": "0.1", "second": "0.2"}
        assert main(["diff", *files]) == 1
        assert "\nsetting\n  lr: 0.1 → 0.2\n" in capsys.readouterr().out
