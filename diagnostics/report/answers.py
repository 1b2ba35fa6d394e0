"""Says what a watched run established, question by question, and what stays unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from diagnostics.engine.finding import Finding


@dataclass(frozen=True)
class Question:
    """A question about any training.

    Attributes:
        subject: what it is about, in a word.
        established: by check (``rule.method``), what is known if it had its evidence and found nothing.
        unknown: what is said if none of them had; empty for a question that does not concern every training.
    """

    subject: str
    established: Mapping[str, str]
    unknown: str


@dataclass(frozen=True)
class Answer:
    """The answer to one question.

    Attributes:
        subject: of the question.
        status: ``found``: a finding is about it.
        detail: what was established, the rules of the findings, or what is missing.
    """

    subject: str
    status: Literal["established", "found", "unknown"]
    detail: str


QUESTIONS: Final = (
    Question(
        "training",
        {
            "unchanged-parameters.from_history": "the steps change the weights",
            "optimizer-misses-parameters.from_optimizer": "the optimizer holds every trainable parameter",
            "not-learning.from_course": "the run ends better than a constant prediction",
        },
        "too few steps were seen",
    ),
    Question(
        "gradients",
        {
            "unreached-parameters.from_gradients": "every trainable parameter gets a gradient",
            "unreached-parameters.from_history": "every layer that the optimizer holds gets a gradient",
            "gradients-not-zeroed.from_history": "gradients are zeroed between steps",
        },
        "the gradients of too few steps were seen",
    ),
    Question(
        "data",
        {
            "constant-inputs.from_batch": "the inputs differ between examples",
            "repeated-batch.from_history": "the batches differ",
            "leaked-evaluation-rows.from_splits": "evaluation rows are not training rows",
        },
        "no batch was read",
    ),
    Question(
        "examples",
        {
            "examples-mixed.from_answers": "no example affects the prediction for another",
            "unused-input.from_answers": "the predictions depend on every input",
            "future-leak.from_answers": "no prediction depends on the token that it predicts",
            "packed-examples-attend.from_answers": "packed documents do not see each other",
        },
        "the model was not tried on changed inputs",
    ),
    Question(
        "loss",
        {
            "logits-as-probabilities.from_loss": "the loss reads what the model returns",
            "targets-out-of-reach.from_batch": "the last layer can reach the targets",
            "inverted-loss.from_gradients": "the steps move predictions towards their targets",
        },
        "the loss is not one that the library knows",
    ),
    Question("metrics", {}, "no reported metric was recomputed"),
    Question(
        "evaluation",
        {"evaluation-mismatch.from_inputs": "evaluation inputs look like training inputs"},
        "no evaluation was compared with training",
    ),
    Question(
        "tokens",
        {
            "eos-never-learned.from_batch": "the end token is trained",
            "labels-shifted-twice.from_batch": "the labels are not shifted twice",
            "doubled-special-token.from_batch": "no special token is doubled",
        },
        "",
    ),
)


def answers(findings: Iterable[Finding], clean: frozenset[str]) -> tuple[Answer, ...]:
    """Return the answers of a run, in the order of the questions.

    Args:
        findings: of the run.
        clean: see `ReportContents.clean`.
    """
    found = {one.rule for finding in findings for one in (finding, *finding.consequences)}
    given = (_answer(question, clean, found) for question in QUESTIONS)
    return tuple(answer for answer in given if answer is not None)


def _answer(question: Question, clean: frozenset[str], found: set[str]) -> Answer | None:
    rules = dict.fromkeys(check.partition(".")[0] for check in question.established)
    if seen := [rule for rule in rules if rule in found]:
        return Answer(question.subject, "found", f"see {', '.join(seen)}")
    if known := [statement for check, statement in question.established.items() if check in clean]:
        return Answer(question.subject, "established", "; ".join(known))
    return Answer(question.subject, "unknown", question.unknown) if question.unknown else None
