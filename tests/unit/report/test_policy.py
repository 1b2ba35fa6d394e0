"""What settings, comments and a baseline make of findings."""

import pytest

from diagnostics import Finding, Report
from diagnostics.facts.where import Where
from diagnostics.report.policy import Policy, Selection, baseline_of


def finding(rule="dead-units", severity="warning", where=None, **more):
    return Finding(rule, severity, "model", "seen", "change", where=where, **more)


@pytest.fixture
def line(tmp_path):
    def write(text):
        file = tmp_path / "train.py"
        file.write_text(f"import torch\n{text}\n")
        return Where(str(file), 2, "<module>")

    return write


class TestSeverities:
    def test_a_rule_has_the_severity_of_the_settings(self):
        (kept,) = Selection(Policy(levels={"dead-units": "note"})).kept([finding()])
        assert kept.severity == "note"

    def test_a_rule_that_is_off_is_listed_as_ignored(self):
        selection = Selection(Policy(levels={"dead-units": "off"}))
        assert selection.kept([finding()]) == []
        assert selection.ignored == {"dead-units": "its severity is off"}

    @pytest.mark.parametrize(
        ("file", "kept"),
        [("tests/a/train.py", 0), ("train.py", 1), (None, 1), ("deep/small.py", 0), ("small.py", 0)],
    )
    def test_an_override_holds_for_its_files(self, tmp_path, monkeypatch, file, kept):
        monkeypatch.chdir(tmp_path)
        off = Policy(levels={"dead-units": "off"})
        policy = Policy(overrides=((("tests/**", "**/small.py"), off),), folder=tmp_path, script="train.py")
        found = finding(where=None if file is None else Where(file, 3, "f"))
        assert len(Selection(policy).kept([found])) == kept


class TestComments:
    def test_a_comment_on_the_line_ignores_a_rule_with_its_reason(self, line):
        selection = Selection(Policy())
        where = line("model = Net()  # diagnose: ignore[dead-units, loss-plateau] sparse on purpose")
        assert selection.kept([finding(where=where), finding("future-leak", where=where)]) == [
            finding("future-leak", where=where)
        ]
        assert selection.fields == {"ignored": {"dead-units": "sparse on purpose"}, "known": (), "settings": ()}

    def test_a_rule_that_does_not_exist_is_a_line_of_the_report(self, line):
        selection = Selection(Policy())
        where = line("model = Net()  # diagnose: ignore[dead-unit]")
        assert selection.kept([finding(where=where)]) == [finding(where=where)]
        (mistake,) = selection.mistakes
        assert mistake == (
            f"the comment in {where} names 'dead-unit', but there is no such rule. Did you mean dead-units?"
        )

    def test_a_comment_on_another_line_does_nothing(self, line):
        where = line("model = Net()\n# diagnose: ignore[dead-units]")
        assert Selection(Policy()).kept([finding(where=where)]) == [finding(where=where)]


class TestBaseline:
    def baseline(self, *findings):
        return Policy(baseline=baseline_of(Report("ran train.py", findings).as_dict()))

    def test_known_findings_are_counted_and_new_ones_kept(self):
        follows = finding("loss-plateau", "note")
        selection = Selection(self.baseline(finding(consequences=(follows,), where=Where("train.py", 3, "f"))))
        new = finding("future-leak")
        moved = finding(where=Where("train.py", 9, "g"))
        assert selection.kept([moved, follows, new]) == [new]
        assert selection.fields["known"] == ("dead-units", "loss-plateau")

    def test_a_finding_that_is_worse_now_is_new(self):
        worse = finding(severity="error")
        assert Selection(self.baseline(finding())).kept([worse]) == [worse]

    def test_a_finding_in_another_file_is_new(self):
        other = finding(where=Where("other.py", 3, "f"))
        assert Selection(self.baseline(finding(where=Where("train.py", 3, "f")))).kept([other]) == [other]

    def test_the_report_shows_them_in_one_line(self):
        report = Report("ran train.py", known=("dead-units", "loss-plateau"))
        assert "Nothing new found.\n2 known findings in the baseline: dead-units, loss-plateau." in str(report)
        assert "Known from the baseline: `dead-units` and `loss-plateau`." in report.to_markdown()
        assert "dead-units: known from the baseline" in report.rendered("html")
