"""What a check has to go by, and what it makes of it: one judgement for each thing that must be right.

Pure: nothing is run here. The numbers come from `witness` and `exam`, which see what a script does, and from
`diagnose run`; what the script prints is compared with them and proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bugs.zoo.keeper.manifest import Exhibit, MetricSignature
from bugs.zoo.keeper.outcome import Outcome, fails_like
from bugs.zoo.keeper.spelling import command
from bugs.zoo.keeper.verification import alarms, notes
from bugs.zoo.learner.checking.result import Judgement
from diagnostics.rules.registry import all_rules, causality_of
from diagnostics.text.join import listed

# Of the different rows that our solution trains on. A repair may drop a last incomplete batch or a few odd rows.
FEWEST_ROWS = 0.9
# Of the evaluation's rows, trained on: a script that evaluates on its own training data has all of them, and short
# texts that happen to be in both splits are a few.
SAME_ROWS = 0.9
FEWEST_EVALUATED = 10  # rows; of fewer, the share says nothing
# Between the metric that is printed and ours of the same model. Printed at three decimals and on the same rows,
# they are equal; rounding in half precision, or another split, moves them by a few hundredths.
DISAGREEMENT = 0.1
UNUSUAL = 2  # times our number of updates, or its half: a reservation
SEED = "ZOO_SEED"  # every script of the zoo takes its seed from there


@dataclass(frozen=True)
class Evidence:
    """All that is known of one attempt.

    Attributes:
        text: of the script.
        outcome: how it ended, and what it printed.
        report: of `diagnose run`, as JSON.
        facts: of `witness`; None if it could write none.
        exam: of `exam`; None if there was nothing to examine.
        changed: files of the zoo that are not what they were before the run.
    """

    text: str
    outcome: Outcome
    report: Mapping[str, Any]
    facts: Mapping[str, Any] | None
    exam: Mapping[str, Any] | None = None
    changed: Sequence[str] = field(default=())


def judgements(exhibit: Exhibit, seen: Evidence) -> list[Judgement]:
    """Judge an attempt. It is a repair if all are ok.

    What follows from a script that did not run to its end is left out.
    """
    found = [_ending(exhibit, seen)]
    if found[0].ok or alarms(seen.report):
        found.append(_rules(exhibit, seen))
    if found[0].ok:
        found += [_training(exhibit, seen), _metric(exhibit, seen), _evaluation(exhibit, seen)]
    honesty = _honesty(seen)
    return [*found, *([honesty] if honesty is not None else [])]


def reservations(exhibit: Exhibit, seen: Evidence) -> list[str]:
    """Return what is unusual about an attempt, a sentence each: notes that fire, another model, other updates.

    None of it is wrong by itself. Notes that our solution gets, too, are left out.
    """
    ours = exhibit.effort
    expected = () if ours is None else ours.notes
    found = [
        f"diagnose run notes {rule}: {finding(seen.report, rule)['message']}"
        for rule in notes(seen.report)
        if rule not in expected
    ]
    if differs := (seen.exam or {}).get("differs"):
        found.append(f"Your model has other weights than ours: {'; '.join(differs)}.")
    updates = (seen.facts or {}).get("updates", 0)
    if ours is not None and updates and not 1 / UNUSUAL <= updates / ours.updates <= UNUSUAL:
        found.append(f"Your training takes {updates:,} optimizer steps, ours {ours.updates:,}.")
    return found


def _ending(exhibit: Exhibit, seen: Evidence) -> Judgement:
    outcome, ending, reason = seen.outcome, seen.outcome.ending, seen.outcome.reason.rstrip(".")
    if outcome.verdict in ("too slow", "too big", "interrupted", "missing dependency"):
        return Judgement("run", False, f"The script did not reach its end: {reason}.", _ROOM[outcome.verdict])
    if outcome.exception is not None:
        line = "" if outcome.called_from is None else f", from line {outcome.called_from.line} of your script"
        if fails_like(exhibit.signature, outcome.exception):
            return Judgement("run", False, f"It fails as it did: {reason}{line}.", "The bug is still there.")
        return Judgement(
            "run",
            False,
            f"It fails, but not as the exhibit's script does: {reason}{line}.",
            "Your change introduced this one; repair it, or undo that change.",
        )
    if ending.returncode or outcome.verdict == "another failure":
        return Judgement("run", False, f"The script failed: {reason}.", "It must run to its end.")
    if seen.facts is None:
        return Judgement(
            "run",
            False,
            "The script ended its process before the check could look at what it had trained.",
            "Let it run to its last line: no os._exit, no exec, no kill.",
        )
    return Judgement("run", True, f"It runs to its end, in {ending.seconds:.0f} s.")


_ROOM = {
    "too slow": "This says nothing about your fix: train no longer than the original does, or close what else is "
    "running, and check again.",
    "too big": "Take no more memory than the original does, or close what else is running.",
    "interrupted": "Check again.",
    "missing dependency": "nox -s env installs all that the zoo runs on.",
}


def _rules(exhibit: Exhibit, seen: Evidence) -> Judgement:
    told = alarms(seen.report)
    if told:
        causality = causality_of(all_rules())
        of_bug = {*exhibit.rules, *(other for rule in exhibit.rules for other in causality.consequences(rule))}
        new = [rule for rule in told if rule not in of_bug]
        reported = f"{listed(new)}. {finding(seen.report, new[0])['message']}" if new else ""
        if len(new) < len(told):  # without its name, which would give the bug away before the first hint
            said = "diagnose run still reports this exhibit's bug, or a consequence of it."
            said += f" It also reports {reported}" if new else ""
            return Judgement("rules", False, said, "To read what it reports, run it on your script.")
        advice = "Our fixed script has no such finding: your change may have introduced it."
        return Judgement("rules", False, f"diagnose run reports {reported}", advice)
    if seen.report.get("faults") or "stages" not in seen.report:
        return Judgement("rules", False, "diagnose run could not make its report.", "Check once more.")
    unjudged = [
        rule
        for rule in (() if exhibit.effort is None else exhibit.effort.judged)
        if rule in seen.report.get("not_applicable", ())
    ]
    if unjudged:
        why = seen.report.get("reasons", {}).get(unjudged[0], "")
        return Judgement(
            "rules",
            False,
            f"diagnose run could not judge {listed(unjudged)}" + (f": {why}" if why else "") + ".",
            "Your script leaves out something that the original does; repair the bug, and keep the rest.",
        )
    return Judgement(
        "rules", True, f"diagnose run reports no error or warning; silent now: {listed(exhibit.rules)}."
    )


def finding(report: Mapping[str, Any], rule: str) -> Mapping[str, Any]:
    """Return what a report says of a rule, wherever it is among causes and consequences."""
    waiting = list(report["findings"])
    while waiting:
        each: Mapping[str, Any] = waiting.pop(0)
        if each["rule"] == rule:
            return each
        waiting += each["consequences"]
    return {"message": ""}


def _training(exhibit: Exhibit, seen: Evidence) -> Judgement:
    facts, ours = seen.facts or {}, exhibit.effort
    updates, rows, models = facts["updates"], facts["rows"], facts["models"]
    if not updates or not facts["has_model"]:
        return Judgement(
            "training",
            False,
            "Nothing was trained: no optimizer took a step for a model.",
            "A fix trains the model; printing a number does not.",
        )
    if models > (1 if ours is None else ours.models):
        return Judgement(
            "training",
            False,
            f"{models} models were trained.",
            "Train one, as the original does: choosing the best of several repairs nothing.",
        )
    if SEED not in seen.text:
        return Judgement(
            "training",
            False,
            f"The script no longer takes its seed from {SEED}.",
            "Put the line back: a fix that needs one seed is luck.",
        )
    said = f"{updates:,} optimizer steps"
    if facts["whole"]:
        said += f", with {rows:,} different rows"
    if ours is None:
        return Judgement("training", True, f"{said}.")
    said += f"; ours: {ours.updates:,} and {ours.rows:,}"
    counted = rows if facts["whole"] else facts["examples"]
    if counted < FEWEST_ROWS * ours.rows:
        return Judgement(
            "training",
            False,
            f"{said}. The model has seen too few rows.",
            "Train on all of the data; a part of it is easier and proves nothing.",
        )
    return Judgement("training", True, f"{said}.")


def _metric(exhibit: Exhibit, seen: Evidence) -> Judgement:
    wanted, printed, signature = exhibit.recovery, seen.outcome.metrics, exhibit.signature
    if wanted.metric not in printed:
        return Judgement(
            "metric", False, f"It prints no line {wanted.metric}=….", "Keep the lines that print the results."
        )
    value = printed[wanted.metric]
    shown = f"It prints {wanted.metric}={_number(value)}"
    if not wanted.holds(value):
        as_before = isinstance(signature, MetricSignature) and (
            signature.metric in printed and signature.holds(printed[signature.metric])
        )
        advice = "The symptom is still there." if as_before else "That is better than before, but not enough yet."
        updates, ours = (seen.facts or {}).get("updates", 0), exhibit.effort
        if ours is not None and 0 < updates < ours.updates / UNUSUAL:
            advice += f" Your training takes only {updates:,} optimizer steps, ours {ours.updates:,}."
        return Judgement("metric", False, f"{shown}; a fix reaches {wanted.words}.", advice)
    return Judgement("metric", True, f"{shown}; a fix reaches {wanted.words}.")


def _evaluation(exhibit: Exhibit, seen: Evidence) -> Judgement:
    facts, exam, wanted = seen.facts or {}, seen.exam, exhibit.recovery
    if facts["whole"] and not facts["evaluated"] and not wanted.metric.startswith("train_"):
        return Judgement(
            "evaluation",
            False,
            f"The script never evaluates its model, so {wanted.metric} was not measured.",
            "Keep the evaluation of the original.",
        )
    if facts["evaluated"] >= FEWEST_EVALUATED and facts["evaluated_on_trained"] >= SAME_ROWS:
        return Judgement(
            "evaluation",
            False,
            f"{facts['evaluated_on_trained']:.0%} of the rows that the script evaluates on were also trained on.",
            "Evaluate on rows that the model has not seen.",
        )
    if exam is None:
        return Judgement(
            "evaluation", False, "There is no trained model to evaluate.", "Let the script train one."
        )
    if exam["problem"]:
        return Judgement("evaluation", False, f"The check could not evaluate your model: {exam['problem']}.", "")
    if wanted.metric not in exam["metrics"]:
        return Judgement(
            "evaluation",
            False,
            "The check could not evaluate your model: the end of our script failed on it.",
            "Keep the inputs and outputs of the model as they are in the original.",
        )
    if exam["on_trained"] >= SAME_ROWS:
        return Judgement(
            "evaluation",
            False,
            f"The model was trained on {exam['on_trained']:.0%} of the rows that are there to evaluate it.",
            "Train on the rows for training only.",
        )
    value = float(exam["metrics"][wanted.metric])
    printed = seen.outcome.metrics.get(wanted.metric, value)
    said = f"We evaluated your model ourselves, and got {wanted.metric}={_number(value)}"
    if not wanted.holds(value):
        return Judgement(
            "evaluation",
            False,
            f"{said}; a fix reaches {wanted.words}.",
            "The number must come from what the model has learned." if wanted.holds(printed) else "",
        )
    if exhibit.exam is None and wanted.holds(printed) and abs(printed - value) > DISAGREEMENT:
        return Judgement(
            "evaluation",
            False,
            f"{said}; your script prints {_number(printed)}.",
            "Evaluate on the same rows and with the same metric as the original.",
        )
    return Judgement("evaluation", True, f"{said}.")


def _number(value: float) -> str:
    """Return a metric as the scripts of the zoo print it: with three decimals, or more where it has more."""
    return f"{value:.3f}" if value == round(value, 3) else f"{value:g}"


def _honesty(seen: Evidence) -> Judgement | None:
    facts = seen.facts or {}
    if seen.changed:
        return Judgement(
            "honesty",
            False,
            f"While the script ran, files of the zoo changed: {listed(list(seen.changed)[:3])}.",
            "git checkout puts them back; only your script may change.",
        )
    if facts.get("solutions"):
        return Judgement(
            "honesty",
            False,
            "The script opened one of our solutions.",
            f"Write the fix into your script; `{command('diff', 'ID')}` shows ours.",
        )
    if facts.get("replaced"):
        return Judgement(
            "honesty",
            False,
            f"The script replaced {listed(list(facts['replaced'])[:3])} with a function of its own.",
            "Repair the script, not the library that it calls; a subclass or a callback is fine.",
        )
    return None
