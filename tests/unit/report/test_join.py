"""`diagnose join`: reports of ranks, read from a folder."""

import dataclasses
import json

import pytest

from diagnostics import Finding, InvalidInput, Report
from diagnostics.cli.main import main
from diagnostics.facts.ranks.notes import Iteration, RankNotes
from diagnostics.facts.ranks.replicas import Sample
from diagnostics.facts.ranks.stall import StalledRank
from diagnostics.facts.where import Where
from diagnostics.report.join import join_reports

FINDING = Finding(
    "gradients-not-zeroed", "error", "gradient", "They pile up.", "zero", where=Where("t.py", 3, "f")
)
GONE = "RuntimeError: Connection closed by peer"


def notes(number, world=2, **more):
    return RankNotes(number, world, f"node-{'ab'[number % 2]}", **more)


def save(folder, rank, *findings, name=None, **more):
    folder.mkdir(parents=True, exist_ok=True)
    title = f"ran train.py, rank {rank.number} of {rank.world}"
    report = Report(title, findings, rank=rank, script="train.py", exit_code=rank.exit_code, **more)
    file = folder / (name or ("r.json" if rank.number == 0 else f"r.rank{rank.number}.json"))
    file.write_text(report.to_json())
    return file


class TestFindings:
    def test_of_ranks_that_differ_name_the_ranks(self, tmp_path):
        for number in range(2):
            weights = {"0.weight": (1.0, 2.0 + number)}
            kept = {step: Sample(10 * step + number, weights) for step in (0, 1, 2)}
            save(tmp_path / "ab"[number], notes(number, model="Net", samples=kept))
        report = join_reports(tmp_path)
        (finding,) = report.findings
        assert finding.rule == "diverged-replicas"
        assert "differs between ranks 0 and 1" in finding.message
        assert report.title == "joined 2 reports: ranks 0 and 1 of 2"
        assert report.script == "train.py"

    def test_of_one_rank_are_told_with_its_name(self, tmp_path):
        save(tmp_path, notes(0))
        save(tmp_path, notes(1), FINDING)
        (finding,) = join_reports(tmp_path).findings
        assert finding.message == "Rank 1 (node-b): They pile up."
        assert finding.evidence == {"on_ranks": [1]}
        assert str(finding.where) == "t.py:3 in f"

    def test_of_all_ranks_are_told_once(self, tmp_path):
        for number in range(2):
            save(tmp_path, notes(number), FINDING)
        (finding,) = join_reports(tmp_path).findings
        assert finding.message == "All 2 ranks, as rank 0 (node-a) saw it: They pile up."

    def test_follow_from_their_cause(self, tmp_path):
        follows = dataclasses.replace(FINDING, rule="collective-timeout", stage="distributed")
        save(tmp_path, notes(0, exit_code=1, error=GONE, batches=6, backward_passes=6), follows)
        save(tmp_path, notes(1, batches=5, backward_passes=5))
        (finding,) = join_reports(tmp_path).findings
        assert finding.rule == "uneven-batches"
        assert [one.rule for one in finding.consequences] == ["collective-timeout"]

    def test_of_a_stall_compare_hosts_that_share_no_folder(self, tmp_path):
        stands = [
            StalledRank(0, "node-a", 7, 3, 40.0, 5, "all_reduce", where=Where("t.py", 9, "f")),
            StalledRank(1, "node-b", 8, 3, 40.0, 5, "barrier", where=Where("t.py", 12, "f")),
        ]
        for number in range(2):
            save(tmp_path, notes(number, exit_code=1, error="RuntimeError: timed out", stalled=stands[number]))
        assert [finding.rule for finding in join_reports(tmp_path).findings] == ["mismatched-collective"]

    def test_of_a_stall_are_told_by_the_rank_that_knew_both_where_one_was_killed(self, tmp_path):
        stands = StalledRank(0, "node-a", 7, 3, 4.0, 5, "all_reduce", where=Where("t.py", 9, "f"))
        evidence = {"ranks": {"0": {"collective": "all_reduce"}, "1": {"collective": "backward"}}}
        told = dataclasses.replace(
            FINDING, rule="mismatched-collective", stage="distributed", message="They wait.", evidence=evidence
        )
        save(tmp_path, notes(0, exit_code=1, error="RuntimeError: timed out", stalled=stands), told)
        (finding,) = join_reports(tmp_path).findings
        assert (finding.rule, finding.consequences) == ("mismatched-collective", ())

    def test_healthy_ranks_give_none(self, tmp_path):
        for number in range(2):
            save(tmp_path, notes(number, iterations=(Iteration(8, True, 1, 1, 64, (0, 0)),), batches=8))
        report = join_reports(tmp_path)
        assert report.ok
        assert [(one.name, one.status) for one in report.stages] == [
            ("rank 0 (node-a)", "passed"), ("rank 1 (node-b)", "passed"),
        ]  # fmt: skip


class TestStages:
    def test_name_the_ranks_without_a_report_and_those_that_failed(self, tmp_path):
        save(tmp_path, notes(1, world=4, exit_code=1, error=GONE))
        save(tmp_path, notes(2, world=4))
        (tmp_path / "config.json").write_text("{}")
        stages = {one.name: (one.status, one.detail) for one in join_reports(tmp_path).stages}
        assert stages["rank 1 (node-b)"] == ("failed", f"ran train.py, rank 1 of 4; {GONE}")
        assert stages["missing"] == ("not judged", "no report of ranks 0 and 3")
        assert stages["left out"] == ("not judged", "config.json: no report of a rank")

    def test_of_a_restarted_job_are_those_of_the_last_attempt(self, tmp_path):
        save(tmp_path, notes(0, exit_code=1, error=GONE))
        save(tmp_path, notes(1, exit_code=1, error=GONE))
        save(tmp_path, notes(0), name="r.restart1.json")
        save(tmp_path, notes(1), name="r.restart1.rank1.json")
        report = join_reports(tmp_path)
        assert report.title == "joined 2 reports: ranks 0 and 1 of 2"
        assert [one.status for one in report.stages if one.name.startswith("rank")] == ["passed", "passed"]
        (left_out,) = (one.detail for one in report.stages if one.name == "left out")
        assert left_out == "r.json and r.rank1.json: no report of a rank in the last attempt"

    def test_of_a_job_that_a_host_joined_are_those_that_ran_at_the_same_time(self, tmp_path):
        save(tmp_path, notes(0, world=1, exit_code=143, began=10.0, ended=20.0))
        save(tmp_path, notes(0, began=30.0, ended=40.0), name="r.restart1.json")
        save(tmp_path, notes(1, began=30.5, ended=40.5))  # the first of its host: it has no number
        report = join_reports(tmp_path)
        assert report.title == "joined 2 reports: ranks 0 and 1 of 2"
        assert [one.detail for one in report.stages if one.name == "left out"] == [
            "r.json: no report of a rank in the last attempt"
        ]

    def test_of_a_job_that_a_host_left_are_those_of_the_rest(self, tmp_path):
        save(tmp_path, notes(1, exit_code=143, began=10.0, ended=20.0))
        save(tmp_path, notes(0, world=1, began=30.0, ended=40.0))
        assert join_reports(tmp_path).title == "joined 1 report: rank 0 of 1"

    def test_of_many_ranks_are_few(self, tmp_path):
        for number in range(40):
            save(tmp_path, notes(number, world=40, exit_code=int(number == 39)))
        stages = join_reports(tmp_path).stages
        assert len(stages) == 17
        assert stages[15].name == "rank 39 (node-b)"
        assert stages[16].detail == "24 more"


class TestBadInput:
    def refused(self, folder):
        with pytest.raises(InvalidInput) as raised:
            join_reports(folder)
        return str(raised.value)

    def test_no_folder(self, tmp_path):
        assert "which is not there. Pass the folder" in self.refused(tmp_path / "none")
        (tmp_path / "r.json").write_text("{}")
        assert "which is a file. Pass the folder" in self.refused(tmp_path / "r.json")

    def test_no_report_of_a_rank(self, tmp_path):
        assert "holds no JSON file. diagnose run --output report.json" in self.refused(tmp_path)
        (tmp_path / "alone.json").write_text(Report("ran train.py").to_json())
        assert "holds 1 JSON file and none is a rank's report" in self.refused(tmp_path)

    def test_no_json(self, tmp_path):
        (tmp_path / "r.json").write_text('{"version": 1, "findings": [')
        assert "r.json is not JSON: " in self.refused(tmp_path)
        (tmp_path / "r.json").write_bytes(b"\xff\xfe\x00")
        assert "r.json is not JSON: " in self.refused(tmp_path)

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"version": 9}, "is a report of version 9, and this diagnose reads version 1"),
            ({"rank": {"number": 0}}, "is no report as this diagnose writes it (KeyError: "),
            ({"rank": 3}, "is no report as this diagnose writes it (TypeError: "),
            ({"findings": [{}]}, "is no report as this diagnose writes it (KeyError: 'where')"),
        ],
    )
    def test_another_layout(self, tmp_path, change, told):
        file = save(tmp_path, notes(0))
        file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
        assert told in self.refused(tmp_path)

    def test_two_reports_of_one_rank(self, tmp_path):
        save(tmp_path, notes(0))
        save(tmp_path, notes(0), name="s.json")
        assert "holds two reports of rank 0: r.json and s.json." in self.refused(tmp_path)

    def test_two_jobs(self, tmp_path):
        save(tmp_path, notes(0))
        save(tmp_path, notes(1, world=4))
        assert "holds reports of different jobs: the number of ranks is 2 in r.json and 4 in r.rank1.json." in (
            self.refused(tmp_path)
        )


class TestCommand:
    def test_prints_the_report_and_returns_1_for_a_finding(self, tmp_path, capsys):
        save(tmp_path, notes(0), FINDING)
        save(tmp_path, notes(1))
        assert main(["join", str(tmp_path), "--format", "json"]) == 1
        assert json.loads(capsys.readouterr().out)["findings"][0]["rule"] == "gradients-not-zeroed"

    def test_bad_input_is_a_sentence(self, tmp_path, capsys):
        assert main(["join", str(tmp_path / "none")]) == 2
        assert capsys.readouterr().err.startswith("diagnose: join was given ")
