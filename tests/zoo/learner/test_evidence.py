"""What a check makes of what was seen: one case for each way of not being a repair, with its words."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bugs.zoo.keeper.catalogue import load_catalogue
from bugs.zoo.keeper.child import Ending
from bugs.zoo.keeper.manifest import Effort
from bugs.zoo.keeper.outcome import judge
from bugs.zoo.learner.checking.evidence import Evidence, judgements, reservations

ROOT = Path(__file__).resolve().parents[3]
CATALOGUE = load_catalogue(ROOT)
EXHIBIT = replace(CATALOGUE["05"], effort=Effort(563, 9_000, ("labels-out-of-range",)))
SCRIPT = Path("attempts/05_nan_loss/train.py")
FACTS: dict[str, Any] = {
    "updates": 563,
    "models": 1,
    "rows": 9_000,
    "examples": 9_000,
    "evaluated": 1_200,
    "evaluated_on_trained": 0.01,
    "whole": True,
    "has_model": True,
    "replaced": [],
    "solutions": [],
}
REPORT: dict[str, Any] = {"stages": [], "findings": [], "faults": [], "not_applicable": [], "reasons": {}}
EXAM: dict[str, Any] = {"metrics": {"eval_accuracy": 0.75}, "problem": None, "as": "ours", "on_trained": 0.02}


def finding(rule: str) -> dict[str, Any]:
    return {"rule": rule, "severity": "error", "message": f"The message of {rule}.", "consequences": []}


def evidence(stdout: str = "eval_accuracy=0.75\n", stderr: str = "", code: int = 0, **changes: Any) -> Evidence:
    parts = {name: changes.pop(name) for name in ("facts", "exam", "report", "text", "changed") if name in changes}
    outcome = judge(EXHIBIT, SCRIPT, Ending("exited", code, 12.0, 900.0, stdout, stderr))
    seen = Evidence("SEED = ZOO_SEED", outcome, REPORT, FACTS, EXAM)
    return replace(seen, **parts)


def wrong(seen: Evidence) -> list[tuple[str, str]]:
    return [(each.name, f"{each.said} {each.advice}".strip()) for each in judgements(EXHIBIT, seen) if not each.ok]


STILL = "diagnose run still reports this exhibit's bug, or a consequence of it."
READ = "To read what it reports, run it on your script."
RECORDED = json.loads((ROOT / "tests" / "scoreboard" / "measured.json").read_text())["said"]["diagnose_run"]


@pytest.mark.parametrize("id", RECORDED)
def test_an_untouched_copy_is_told_of_no_finding_that_its_change_made(id: str) -> None:
    """Whatever was recorded of the broken script is the exhibit's bug, or follows from it."""
    exhibit = CATALOGUE[id]
    ours = () if exhibit.effort is None else exhibit.effort.notes
    rules = {answer["kind"] for answer in RECORDED[id]["broken"]["answers"]} - {*ours}
    report = REPORT | {"findings": [finding(rule) for rule in sorted(rules)]}
    judgement = next(each for each in judgements(exhibit, evidence(report=report)) if each.name == "rules")
    assert judgement.said == STILL


def test_a_consequence_that_is_left_is_not_called_new() -> None:
    seen = evidence(report=REPORT | {"findings": [finding("not-learning")]})
    judgement = next(each for each in judgements(CATALOGUE["16"], seen) if each.name == "rules")
    assert judgement.said == STILL


def test_a_short_training_that_fails_is_told_its_steps() -> None:
    few = evidence("finite_weights=1.000\neval_accuracy=0.500\n", facts=FACTS | {"updates": 120})
    judgement = next(each for each in judgements(EXHIBIT, few) if each.name == "metric")
    assert judgement.advice == (
        "That is better than before, but not enough yet. Your training takes only 120 optimizer steps, ours 563."
    )


def test_a_repair_is_told_what_was_seen() -> None:
    assert [(each.ok, each.said) for each in judgements(EXHIBIT, evidence())] == [
        (True, "It runs to its end, in 12 s."),
        (True, "diagnose run reports no error or warning; silent now: labels-out-of-range and non-finite-loss."),
        (True, "563 optimizer steps, with 9,000 different rows; ours: 563 and 9,000."),
        (True, "It prints eval_accuracy=0.750; a fix reaches at least 0.7."),
        (True, "We evaluated your model ourselves, and got eval_accuracy=0.750."),
    ]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (
            evidence(
                "finite_weights=0.000\neval_accuracy=0.333\n",
                report=REPORT | {"findings": [finding("non-finite-loss")]},
            ),
            [
                ("rules", f"{STILL} {READ}"),
                (
                    "metric",
                    "It prints eval_accuracy=0.333; a fix reaches at least 0.7. The symptom is still there.",
                ),
            ],
        ),
        (
            evidence(report=REPORT | {"findings": [finding("ragged-batch"), finding("non-finite-loss")]}),
            [
                (
                    "rules",
                    f"{STILL} It also reports ragged-batch. The message of ragged-batch. {READ}",
                )
            ],
        ),
        (
            evidence(report=REPORT | {"findings": [finding("ragged-batch")]}),
            [
                (
                    "rules",
                    "diagnose run reports ragged-batch. The message of ragged-batch. Our fixed script has no such "
                    "finding: your change may have introduced it.",
                )
            ],
        ),
        (
            evidence(
                report=REPORT
                | {"not_applicable": ["labels-out-of-range"], "reasons": {"labels-out-of-range": "no labels"}}
            ),
            [
                (
                    "rules",
                    "diagnose run could not judge labels-out-of-range: no labels. Your script leaves out "
                    "something that the original does; repair the bug, and keep the rest.",
                )
            ],
        ),
        (
            evidence(facts=FACTS | {"updates": 0, "has_model": False}, exam=None),
            [
                (
                    "training",
                    "Nothing was trained: no optimizer took a step for a model. A fix trains the model; "
                    "printing a number does not.",
                ),
                ("evaluation", "There is no trained model to evaluate. Let the script train one."),
            ],
        ),
        (
            evidence(facts=FACTS | {"rows": 16}),
            [
                (
                    "training",
                    "563 optimizer steps, with 16 different rows; ours: 563 and 9,000. The model has seen "
                    "too "
                    "few rows. Train on all of the data; a part of it is easier and proves nothing.",
                )
            ],
        ),
        (
            evidence(facts=FACTS | {"models": 5}),
            [
                (
                    "training",
                    "5 models were trained. Train one, as the original does: choosing the best of several "
                    "repairs nothing.",
                )
            ],
        ),
        (
            evidence(text="SEED = 17"),
            [
                (
                    "training",
                    "The script no longer takes its seed from ZOO_SEED. Put the line back: a fix "
                    "that needs one seed is luck.",
                )
            ],
        ),
        (
            evidence("done\n"),
            [("metric", "It prints no line eval_accuracy=…. Keep the lines that print the results.")],
        ),
        (
            evidence("eval_accuracy=0.99\n", exam=EXAM | {"metrics": {"eval_accuracy": 0.34}}),
            [
                (
                    "evaluation",
                    "We evaluated your model ourselves, and got eval_accuracy=0.340; a fix reaches at least 0.7. "
                    "The number must come from what the model has learned.",
                )
            ],
        ),
        (
            evidence("eval_accuracy=0.99\n"),
            [
                (
                    "evaluation",
                    "We evaluated your model ourselves, and got eval_accuracy=0.750; your script prints 0.990. "
                    "Evaluate on the same rows and with the same metric as the original.",
                )
            ],
        ),
        (
            evidence(facts=FACTS | {"evaluated_on_trained": 1.0}),
            [
                (
                    "evaluation",
                    "100% of the rows that the script evaluates on were also trained on. Evaluate on rows that "
                    "the model has not seen.",
                )
            ],
        ),
        (
            evidence(facts=FACTS | {"evaluated": 0, "evaluated_on_trained": 0.0}),
            [
                (
                    "evaluation",
                    "The script never evaluates its model, so eval_accuracy was not measured. Keep the "
                    "evaluation of the original.",
                )
            ],
        ),
        (
            evidence(exam=EXAM | {"on_trained": 0.99}),
            [
                (
                    "evaluation",
                    "The model was trained on 99% of the rows that are there to evaluate it. Train on the rows "
                    "for "
                    "training only.",
                )
            ],
        ),
        (
            evidence(facts=FACTS | {"replaced": ["keras.src.trainers.trainer.Trainer.evaluate"]}),
            [
                (
                    "honesty",
                    "The script replaced keras.src.trainers.trainer.Trainer.evaluate with a function of its own. "
                    "Repair the script, not the library that it calls; a subclass or a callback is fine.",
                )
            ],
        ),
        (
            evidence(facts=FACTS | {"solutions": ["solutions/05_nan_loss/train.py"]}),
            [
                (
                    "honesty",
                    "The script opened one of our solutions. Write the fix into your script; `python -m bugs "
                    "diff ID` shows ours.",
                )
            ],
        ),
        (
            evidence(changed=["bugs/zoo/learner/path.py"]),
            [
                (
                    "honesty",
                    "While the script ran, files of the zoo changed: bugs/zoo/learner/path.py. git checkout puts "
                    "them back; only your script may change.",
                )
            ],
        ),
        (
            evidence(facts=None, exam=None),
            [
                (
                    "run",
                    "The script ended its process before the check could look at what it had trained. Let it run "
                    "to "
                    "its last line: no os._exit, no exec, no kill.",
                )
            ],
        ),
    ],
)
def test_what_is_no_repair_is_told_why(seen: Evidence, expected: list[tuple[str, str]]) -> None:
    assert wrong(seen) == expected


class TestScriptsThatFail:
    TRACE = 'Traceback (most recent call last):\n  File "attempts/x/train.py", line 7, in <module>\n    f()\n{}\n'

    def judged(self, id: str, error: str) -> list[str]:
        exhibit = CATALOGUE[id]
        outcome = judge(exhibit, SCRIPT, Ending("exited", 1, 12.0, 900.0, "", self.TRACE.format(error)))
        seen = Evidence("ZOO_SEED", outcome, REPORT, FACTS, None)
        return [f"{each.said} {each.advice}" for each in judgements(exhibit, seen) if each.name == "run"]

    def test_as_before(self) -> None:
        assert self.judged("04", "IndexError: Target 2 is out of bounds.") == [
            "It fails as it did: IndexError: Target 2 is out of bounds. The bug is still there."
        ]

    def test_in_another_way(self) -> None:
        (said,) = self.judged("04", "NameError: name 'modle' is not defined")
        assert said.startswith("It fails, but not as the exhibit's script does: NameError: name 'modle' is not")


def test_a_training_whose_rows_cannot_be_read_is_judged_by_their_number() -> None:
    assert wrong(evidence(facts=FACTS | {"rows": 0, "whole": False})) == []
    assert wrong(evidence(facts=FACTS | {"rows": 0, "whole": False, "examples": 500}))[0][0] == "training"


class TestReservations:
    """What is right, and unusual."""

    NOTE = finding("unused-outputs") | {"severity": "note"}

    def test_there_are_none_for_a_fix_like_ours(self) -> None:
        assert reservations(EXHIBIT, evidence()) == []

    def test_a_note_is_one_unless_our_solution_gets_it_too(self) -> None:
        seen = evidence(report=REPORT | {"findings": [self.NOTE]})
        said = ["diagnose run notes unused-outputs: The message of unused-outputs."]
        assert reservations(EXHIBIT, seen) == said
        assert [each.ok for each in judgements(EXHIBIT, seen)] == [True] * 5
        effort = replace(EXHIBIT.effort, notes=("unused-outputs",))
        assert reservations(replace(EXHIBIT, effort=effort), seen) == []

    def test_another_model_and_another_number_of_updates(self) -> None:
        exam = EXAM | {"differs": ["classifier.weight is 4 by 64, ours 3 by 64"]}
        assert reservations(EXHIBIT, evidence(exam=exam, facts=FACTS | {"updates": 5_630})) == [
            "Your model has other weights than ours: classifier.weight is 4 by 64, ours 3 by 64.",
            "Your training takes 5,630 optimizer steps, ours 563.",
        ]
