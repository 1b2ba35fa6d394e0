"""Tells trials of a learning rate from trainings: a script that compares rates is right to try bad ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from diagnostics.engine.finding import Finding
from diagnostics.report.merge import TrainingReports
from diagnostics.report.report import Report
from diagnostics.text.join import listed

OTHERS = 2  # trainings at other rates that learned: a single one may be the other phase of the same work
LATEST = 5  # losses, whose median is where a training ended
SEEN_WHEREVER = frozenset({"non-finite-activations", "non-finite-gradients", "non-finite-loss"})
"""Rules that are judged where there is a NaN: whatever learned has none."""

FELL = 0.1  # of the first loss; ours
NUMBER = re.compile(r"_\d+(?=/|$)")  # that Keras gives to the layers of each further model


@dataclass(frozen=True)
class _Trial:
    layers: tuple[str, ...]
    rates: tuple[float, ...]
    first: float
    last: float
    learned: bool

    def is_beside(self, other: _Trial) -> bool:
        """Whether it began where the other training did, of the same layers and at another rate."""
        alike = self.layers == other.layers and self.rates != other.rates
        # A loss that is NaN from the first watched step on is not where the other one ended, either.
        return alike and not self.first <= (other.first + other.last) / 2


def without_bad_trials(trainings: Sequence[TrainingReports]) -> list[TrainingReports]:
    """Return the trainings, with notes for what is wrong with a trial of a rate.

    A trial is a training of the same layers as others that ran at other rates, began where it began, not where
    they ended, and learned: two of them at least. Of its findings those are notes that the others could have had,
    as errors or warnings, and did not, and those that an experiment gave: the script makes its own. The players of
    a game are none.
    """
    trials = [_trial(training) if training.trained_alone else None for training in trainings]
    return [
        training if trial is None else _noted(training, trial, [*zip(trials, trainings, strict=True)])
        for trial, training in zip(trials, trainings, strict=True)
    ]


def _noted(
    training: TrainingReports, trial: _Trial, all_: list[tuple[_Trial | None, TrainingReports]]
) -> TrainingReports:
    good = [
        (other, reports)
        for other, reports in all_
        if other is not None and other.learned and trial.is_beside(other)
    ]
    if trial.learned or len(good) < OTHERS:
        return training
    judged = SEEN_WHEREVER.union(*(report.judged for _, reports in good for report in reports.both))
    rates = listed(dict.fromkeys(f"{max(other.rates):.3g}" for other, _ in good))
    told = (
        f" The script compares learning rates: such models learned at {rates}. "
        "A comparison is meant to have bad ones."
    )

    def told_in(report: Report | None) -> Report | None:
        if report is None:
            return None
        findings = [
            _note(one, told) if one.rule in judged or "best_experiment" in one.evidence else one
            for one in report.findings
        ]
        return replace(report, findings=tuple(findings))

    return replace(training, examined=told_in(training.examined), watched=told_in(training.watched))


def _note(finding: Finding, told: str) -> Finding:
    consequences = tuple(replace(one, severity="note") for one in finding.consequences)
    return replace(finding, severity="note", message=finding.message + told, consequences=consequences)


def _trial(training: TrainingReports) -> _Trial | None:
    history = None if training.watched is None else training.watched.history
    if history is None or history.losses is None or history.updates is None:
        return None
    losses, rates = history.losses.values, history.steps.learning_rates
    if not len(losses) or not rates.size:
        return None
    latest = sorted(losses[-LATEST:])
    first, last = float(losses[0]), float(latest[len(latest) // 2])
    found = [finding for report in training.both for finding in report.findings]
    clean = all(finding.severity == "note" for finding in found)
    layers = tuple(NUMBER.sub("", layer) for layer in history.updates.layers)
    return _Trial(layers, tuple(map(float, rates[0])), first, last, clean and first - last > FELL * abs(first))
