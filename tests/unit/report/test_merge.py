from dataclasses import replace

import numpy as np
import pytest

from diagnostics.engine.finding import Finding
from diagnostics.facts.crash import CrashFacts
from diagnostics.facts.where import Where
from diagnostics.report.contents import StageResult
from diagnostics.report.doubts import doubted
from diagnostics.report.merge import TrainingReports, merged
from diagnostics.report.policy import Policy
from diagnostics.report.report import Report
from tests.support.courses import history

WHERE = Where("train.py", 31, "main")


def finding(rule, severity="warning", **options):
    return Finding(rule, severity, "model", f"{rule} was seen.", "change it", **options)


def report(*findings, title="examined Net", **options):
    return Report(title, tuple(findings), **options)


def told(whole):
    return [(f.rule, f.severity, [c.rule for c in f.consequences]) for f in whole.findings]


def training(examined=None, watched=None):
    return TrainingReports(examined, watched)


class TestMerged:
    def test_nothing(self):
        whole = merged("ran train.py", [])
        assert (whole.title, whole.findings, whole.ok) == ("ran train.py", (), True)

    def test_what_is_found_twice_is_told_once_with_the_line_and_the_step(self):
        examined = report(finding("labels-out-of-range"))
        watched = report(finding("labels-out-of-range", step=3))
        explained = report(finding("labels-out-of-range", "error", where=WHERE))
        (only,) = merged("", [training(examined, watched)], explained).findings
        assert (only.severity, only.where, only.step) == ("error", WHERE, 3)

    def test_the_first_step_is_judged_by_all_trainings_of_the_model(self):
        first = report(finding("initial-loss-off", evidence={"loss": 4.9, "chance": 1.79}))
        head = report(history=history(np.linspace(4.9, 1.5, 120)))
        whole = report(history=history(np.linspace(1.4, 0.1, 300)))
        (alone,) = merged("", [TrainingReports(first, head)]).findings
        (both,) = merged("", [TrainingReports(first, head, continued=(whole,)), training(None, whole)]).findings
        assert (alone.severity, both.severity) == ("warning", "note")

    @pytest.mark.parametrize(
        ("rule", "evidence"),
        [
            ("unreached-parameters", {"layers": ["2"]}),
            ("unreached-parameters", {"unreached": {"2.weight": 12}}),
            ("optimizer-misses-parameters", {"missing": {"2.weight": 12}, "held": 2, "foreign": 0}),
        ],
    )
    def test_weights_that_another_training_changes_are_not_left_out(self, rule, evidence):
        left_out, other = finding(rule, evidence=evidence), report(history=history(np.linspace(1, 0, 60)))
        still = report(history=history(np.linspace(1, 0, 60), update=0.0))

        def severities(**others):
            return [f.severity for f in merged("", [TrainingReports(None, report(left_out), **others)]).findings]

        assert severities(continued=(other,)) == []
        assert severities(before=(other,)) == ["note"]
        assert severities(continued=(still,)) == severities(before=(still,)) == ["warning"]

    def test_an_optimizer_of_another_model_is_a_bug_whatever_follows(self):
        evidence = {"missing": {"2.weight": 12}, "held": 0, "foreign": 2}
        alone = report(finding("optimizer-misses-parameters", evidence=evidence))
        later = report(history=history(np.linspace(1, 0, 60)))
        assert merged("", [TrainingReports(alone, None, continued=(later,))]).findings == alone.findings

    def test_what_is_found_twice_is_told_as_it_was_when_it_was_worst(self):
        watched = report(replace(finding("growing-memory", "note", step=3), message="The memory grows."))
        explained = report(replace(finding("growing-memory", "error"), message="losses holds 300 graphs."))
        (only,) = merged("", [training(None, watched)], explained).findings
        assert (only.message, only.severity, only.step) == ("losses holds 300 graphs.", "error", 3)

    def test_what_is_found_twice_is_told_of_the_trained_model(self):
        before = report(finding("packed-examples-attend", evidence={"trained": False}))
        after = report(finding("packed-examples-attend", evidence={"trained": True}))
        (only,) = merged("", [training(before, after)]).findings
        assert only.evidence == {"trained": True}

    def test_memory_that_grew_on_another_device_is_a_finding_beside_the_one_that_ran_out(self):
        grew = finding("growing-memory", "note", evidence={"memory_of": "process", "grew_bytes": 1e9})
        full = finding("out-of-memory", "error", evidence={"device": "GPU 0", "tried_bytes": 100})
        whole = merged("", [training(None, report(grew))], report(full))
        assert told(whole) == [("out-of-memory", "error", []), ("growing-memory", "note", [])]

    def test_a_consequence_stands_under_its_cause_and_lends_it_its_severity(self):
        watched = report(finding("non-finite-loss", "error"), finding("loss-plateau"))
        whole = merged("", [training(report(finding("labels-out-of-range")), watched)])
        assert told(whole) == [("labels-out-of-range", "error", ["non-finite-loss", "loss-plateau"])]

    def test_a_consequence_of_a_consequence_stands_under_the_first_cause(self):
        watched = report(finding("loss-plateau"), finding("learning-rate-too-high"))
        whole = merged("", [training(report(finding("default-learning-rate")), watched)])
        assert told(whole) == [("default-learning-rate", "warning", ["loss-plateau", "learning-rate-too-high"])]

    def test_two_causes_are_two_findings_the_worse_one_first(self):
        whole = merged("", [training(report(finding("sorted-by-label"), finding("no-gradient", "error")))])
        assert told(whole) == [("no-gradient", "error", []), ("sorted-by-label", "warning", [])]

    def test_what_goes_wrong_in_one_of_two_players_goes_wrong_in_the_other(self):
        generator = report(finding("exploding-gradients", "error"), finding("non-finite-loss", "error"))
        discriminator = report(finding("gradients-not-zeroed", "error"), finding("non-finite-loss", "error"))
        players = [TrainingReports(None, one, trained_alone=False) for one in (generator, discriminator)]
        consequences = ["exploding-gradients", "non-finite-loss"]
        assert told(merged("", players)) == [("gradients-not-zeroed", "error", consequences)]

    def test_what_one_training_shows_is_no_consequence_of_another(self):
        whole = merged(
            "",
            [training(report(finding("labels-out-of-range"))), training(None, report(finding("loss-plateau")))],
        )
        assert told(whole) == [("labels-out-of-range", "warning", []), ("loss-plateau", "warning", [])]

    def test_the_same_in_many_trainings_is_told_once_with_their_number(self):
        whole = merged("", [training(report(finding("dead-units"))) for _ in range(4)])
        (only,) = whole.findings
        assert only.other_trainings == 3
        assert "also: in 3 other trainings of this script" in str(whole)

    def test_the_exception_belongs_to_the_last_training(self):
        trainings = [training(), training(None, report(finding("growing-memory")))]
        crash = CrashFacts("RuntimeError", "can't allocate memory", (), live=True)
        whole = merged("", trainings, report(finding("out-of-memory", "error"), crash=crash))
        assert told(whole) == [("growing-memory", "error", ["out-of-memory"])]
        assert whole.crash is crash

    def test_what_is_ignored_leaves_its_consequences_to_themselves(self):
        examined = report(finding("class-imbalance"), finding("constant-predictions"))
        ignores = {"class-imbalance": "rare events", "dead-units": ""}
        whole = merged("", [training(examined)], policy=Policy(ignores))
        assert told(whole) == [("constant-predictions", "warning", [])]
        assert (whole.ignored, whole.ignored_in_vain) == ({"class-imbalance": "rare events"}, ("dead-units",))
        assert str(whole).endswith(
            "1 warning.\nIgnored: class-imbalance (rare events).\nUnused ignore: dead-units."
        )

    def test_a_rule_that_one_report_could_judge_is_judged(self):
        examined = report(not_applicable={"dead-units": "no layer", "overfitting": "no evaluation"})
        watched = report(judged=frozenset({"dead-units"}))
        whole = merged("", [training(examined, watched)])
        assert (dict(whole.not_applicable), whole.judged) == (
            {"overfitting": "no evaluation"},
            frozenset({"dead-units"}),
        )

    def test_the_reason_of_the_run_counts_more_than_that_of_its_first_step(self):
        examined = report(not_applicable={"loss-plateau": "needs a trial of the learning rate"})
        watched = report(not_applicable={"loss-plateau": "needs 400 steps"}, history=history(np.full(5, 0.5)))
        whole = merged("", [training(examined, watched)])
        assert dict(whole.not_applicable) == {"loss-plateau": "needs 400 steps"}

    def test_faults_are_told_once(self):
        whole = merged("", [training(report(faults=("a", "b"))), training(report(faults=("b",)))], faults=["c"])
        assert whole.faults == ("a", "b", "c")


class TestStages:
    def test_of_one_training_the_whole_walk(self):
        examined = report(stages=(StageResult("dataset", "passed", "10 rows"),))
        watched = report(stages=(StageResult("loss", "passed", "1 to 0"),))
        whole = merged("", [training(examined, watched)])
        assert [stage.name for stage in whole.stages] == ["dataset", "loss"]

    def test_a_stage_that_the_run_went_through_is_not_called_unreached(self):
        walk = ("backward", "optimizer step", "evaluation metric")
        examined = report(stages=tuple(StageResult(name, "not reached") for name in walk))
        watched = report(stages=(StageResult("gradients", "passed"), StageResult("updates", "not judged")))
        whole = merged("", [training(examined, watched)])
        assert [stage.name for stage in whole.stages] == [*walk[1:], "gradients", "updates"]

    @pytest.mark.parametrize(("status", "shown"), [("passed", "passed"), ("stopped", "stopped")])
    def test_of_several_a_line_each(self, status, shown):
        examined = report(stages=(StageResult("dataset", status),))
        whole = merged("", [training(examined, report(title="watched 5 steps of Net")), training(report())])
        assert whole.stages == (
            StageResult("training 1", shown, "examined Net; watched 5 steps of Net"),
            StageResult("training 2", "passed", "examined Net"),
        )

    def test_each_names_its_errors_and_warnings(self):
        watched = report(finding("loss-plateau"), finding("learning-rate-too-high"), finding("x", "note"))
        whole = merged("", [training(report()), training(report(), watched)])
        assert [stage.detail for stage in whole.stages] == [
            "examined Net",
            "examined Net; examined Net; found: learning-rate-too-high",
        ]
        assert {stage.name for stage in whole.stages} & doubted(whole) == {"training 2"}

    def test_of_many_only_the_first_few(self):
        stages = merged("", [training(report()) for _ in range(20)]).stages
        assert (len(stages), stages[-1]) == (9, StageResult("trainings", "passed", "and 12 more"))


class TestCourse:
    def test_of_several_that_one_is_drawn_in_which_something_was_found(self):
        calm, bad = history(np.full(50, 0.5)), history(np.full(20, 1.1))
        trainings = [
            training(None, report(history=calm)),
            training(None, report(finding("loss-plateau"), history=bad)),
        ]
        assert merged("", trainings).history is bad
