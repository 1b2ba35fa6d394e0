"""Summarises each fact for the line of its stage in a report."""

from __future__ import annotations

from collections.abc import Sequence

from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.pipeline import (
    BatchFacts,
    Fact,
    GradientFacts,
    LossFacts,
    ModelFacts,
    OptimizerFacts,
    OutputFacts,
)
from diagnostics.facts.trials import MetricFacts, OverfitFacts, ReproductionFacts, SubsetTrial
from diagnostics.text.join import count_of


def line(facts: Sequence[Fact]) -> str:
    """Return the line of a stage: the data before the model that is described along with them."""
    ordered = sorted(facts, key=lambda fact: not isinstance(fact, DatasetFacts))
    return "; ".join(dict.fromkeys(filter(None, map(detail, ordered))))


def detail(fact: Fact) -> str:
    """Return a short summary; empty if another fact of the same stage has it."""
    match fact:
        case ModelFacts():
            frozen = fact.num_parameters - fact.num_trainable
            size = "a model of " + count_of(fact.num_parameters, "parameter")
            return size + (f", {frozen:,} of them frozen" if frozen else "")
        case DatasetFacts():
            rows = "unknown number of rows" if fact.size is None else f"{fact.size:,} rows"
            first = "" if fact.spread_out else "the first "
            columns = f", with {', '.join(fact.columns)}" if fact.columns else ""
            return f"{rows}, {first}{fact.rows_read:,} read{columns}"
        case BatchFacts():
            shapes = [
                f"{_input_name(name, len(fact.inputs))} {array.shape}" for name, array in fact.inputs.items()
            ]
            if fact.labels is not None:
                shapes.append(f"{_name(fact.labels_name)} {fact.labels.shape}")
            return f"{count_of(fact.size, 'example')}: {', '.join(shapes)}"
        case OutputFacts():
            return f"outputs {fact.shape}" if fact.shape else ""
        case LossFacts():
            kind = "" if fact.kind == "other" else f", {fact.kind.replace('_', ' ')}"
            return f"loss {fact.value:.4g}{kind}".replace("nan", "NaN")
        case GradientFacts():
            count = len(fact.norms) + len(fact.unreached)
            return f"{len(fact.norms)} of {count} trainable parameters get a gradient"
        case OptimizerFacts():
            rates = ", ".join(f"{rate:g}" for rate in sorted(set(fact.learning_rates)))
            return f"{fact.name} with learning rate {rates}" if rates else fact.name
        case OverfitFacts():
            scaled = ", with targets scaled to 1" if fact.rescaled else ""
            fell = f"loss {fact.losses[0]:.4g} to {min(fact.losses):.4g}"
            return f"{fell} in {len(fact.losses)} steps on a copy{scaled}"
        case SubsetTrial():
            return f"{count_of(fact.examples, 'example')}: {fact.outcome}"
        case MetricFacts():
            return "the metric was tried on predictions that are all correct"
        case ReproductionFacts():
            if fact.differing:
                return f"{fact.differing:,} of {fact.compared:,} tensors differ between two runs of a step"
            return f"{fact.compared:,} tensors are equal in two runs of a step"
    return ""


def _input_name(name: str, count: int) -> str:
    if not name.isdigit():
        return name
    return "input" if count == 1 else f"input {name}"


def _name(name: str | None) -> str:
    return "target" if name is None or name.isdigit() else name
