"""A few words on each fact, for the line of its stage in a report."""

from __future__ import annotations

from diagnostics.facts.pipeline import (
    BatchFacts,
    DatasetFacts,
    Fact,
    GradientFacts,
    LossFacts,
    ModelFacts,
    OptimizerFacts,
    OutputFacts,
)
from diagnostics.facts.trials import MetricFacts, OverfitFacts, ReproductionFacts


def detail(fact: Fact) -> str:
    """Return what was seen in a few words; empty where another fact of the same stage says it."""
    match fact:
        case ModelFacts():
            frozen = fact.num_parameters - fact.num_trainable
            return f"{fact.num_parameters:,} parameters" + (f", {frozen:,} frozen" if frozen else "")
        case DatasetFacts():
            rows = "rows of unknown number" if fact.size is None else f"{fact.size:,} rows"
            first = "" if fact.spread_out else "the first "
            columns = f", with {', '.join(fact.columns)}" if fact.columns else ""
            return f"{rows}, {first}{fact.rows_read:,} read{columns}"
        case BatchFacts():
            shapes = [
                f"{_input_name(name, len(fact.inputs))} {array.shape}" for name, array in fact.inputs.items()
            ]
            if fact.labels is not None:
                shapes.append(f"{_name(fact.labels_name)} {fact.labels.shape}")
            return f"{fact.size} {'example' if fact.size == 1 else 'examples'}: {', '.join(shapes)}"
        case OutputFacts():
            return f"outputs {fact.shape}" if fact.shape else ""
        case LossFacts():
            kind = "" if fact.kind == "other" else f", {fact.kind.replace('_', ' ')}"
            return f"loss {fact.value:.4g}{kind}"
        case GradientFacts():
            count = len(fact.norms) + len(fact.unreached)
            return f"{len(fact.norms)} of {count} trainable parameters get a gradient"
        case OptimizerFacts():
            rates = ", ".join(f"{rate:g}" for rate in sorted(set(fact.learning_rates)))
            return f"{fact.name} with learning rate {rates}"
        case OverfitFacts():
            scaled = ", its targets scaled to 1" if fact.rescaled else ""
            fell = f"loss {fact.losses[0]:.4g} to {min(fact.losses):.4g}"
            return f"{fell} in {len(fact.losses)} steps on a copy{scaled}"
        case MetricFacts():
            return "asked about predictions that are all correct"
        case ReproductionFacts():
            if fact.differing:
                return f"{fact.differing:,} of {fact.compared:,} tensors of a step made twice differ"
            return f"{fact.compared:,} tensors of a step made twice are the same"
    return ""


def _input_name(name: str, count: int) -> str:
    if not name.isdigit():
        return name
    return "input" if count == 1 else f"input {name}"


def _name(name: str | None) -> str:
    return "target" if name is None or name.isdigit() else name
