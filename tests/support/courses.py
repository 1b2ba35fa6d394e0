"""Facts of a watched run, built from a few numbers, for the tests of the rules on its course."""

import inspect

import numpy as np

from diagnostics.collectors.shared.history import training_history
from diagnostics.engine.evaluate import needs
from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.training import NoGradHistory, PredictionFacts, TrainingHistory

EVERY = 20  # steps between two that are looked at
COUNTS = set(inspect.signature(training_history).parameters) - {"rows", "samples"}
NO_GRAD = tuple(inspect.signature(NoGradHistory).parameters)
SAMPLED = ("sampled_steps", "update_ratios", "weight_norms", "memory_bytes")


def recorded(**fields):
    """Return the history of a run from the fields that a watcher keeps; None is not known."""
    fields = {name: value for name, value in fields.items() if value is not None}
    known = np.full(len(fields["steps"]), True)
    rows = {"losses": np.full(len(known), np.nan), "loss_known": known if "losses" in fields else ~known}
    if "gradient_norms" in fields and "gradient_known" not in fields:
        rows["gradient_known"] = known
    sampled = fields.get("sampled_steps", np.zeros(0, int))
    unknown = np.full((len(sampled), len(fields["layers"])), np.nan)
    samples = {"sampled_steps": sampled, "update_ratios": unknown, "weight_norms": unknown}
    samples["memory_bytes"] = np.full(len(sampled), np.nan)
    evaluations = zip(fields.pop("evaluation_steps", ()), fields.pop("evaluation_losses", ()), strict=True)
    no_grad = dict.fromkeys(("passes", "passes_in_training_mode", "rounds"), 0)
    no_grad |= {name: fields.pop(key) for name in NO_GRAD if (key := f"no_grad_{name}") in fields}
    counts = {"memory_holder": fields.pop("memory_of", "process")}
    counts |= {name: fields.pop(name) for name in COUNTS & fields.keys()}
    samples |= {name: fields.pop(name) for name in SAMPLED if name in fields}
    return training_history(
        rows | fields, samples, evaluations=list(evaluations), no_grad=NoGradHistory(**no_grad), **counts
    )


def judge(check, *facts):
    """Call a rule's check with those of the facts that it takes, as the evaluator does."""
    parts = [part for fact in facts for part in (fact.parts() if isinstance(fact, TrainingHistory) else (fact,))]
    known = {type(part): part for part in parts if part is not None}
    taken = check.__self__.checks()[check.__name__]
    if missing := [need.kind for need in taken.values() if need.required and need.kind not in known]:
        raise NotApplicable(needs(*missing))
    return check(**{parameter: known.get(need.kind) for parameter, need in taken.items()})


def history(losses=None, *, steps=None, update=1e-3, rates=0.1, prints=None, norms=1.0, **known):
    """Return the facts of a run with these losses; `update`, `rates` and `norms` are numbers or arrays."""
    count = steps or len(losses)
    looked_at = np.arange(0, count, EVERY)
    ones = np.ones(count, np.float32)
    given = {
        "total_steps": count,
        "steps": np.arange(count),
        "layers": ("0", "2"),
        "gradient_norms": ones,
        "layer_gradient_norms": np.ones((count, 2), np.float32),
        "learning_rates": np.broadcast_to(np.asarray(rates, float), count).reshape(-1, 1),
        "training_mode": np.ones(count, np.int8),
        "passes": np.ones(count, np.int64),
        "gradients_zeroed": np.ones(count, np.int8),
        "losses": None if losses is None else np.asarray(losses, float),
        "batch_fingerprints": np.arange(1, count + 1, dtype=np.uint64) if prints is None else prints,
        "batch_sizes": np.full(count, 32),
        "sampled_steps": looked_at,
        "update_ratios": np.broadcast_to(np.asarray(update)[..., None], (len(looked_at), 2)).astype(np.float32),
        "weight_norms": np.broadcast_to(np.asarray(norms)[..., None], (len(looked_at), 2)).astype(np.float32),
    }
    return recorded(**(given | known))


def answers(losses, labels=(16, 16), *, given=None, right=None, plain=True, softmax=True, **known):
    """Return what a classifier answered: one look every 20 steps, with these losses, labels and answers."""
    count = len(losses)
    labels = np.broadcast_to(np.asarray(labels), (count, np.shape(labels)[-1]))
    size = labels.sum(axis=1)
    none = np.zeros((0, labels.shape[1]), np.int64)
    given_facts = {
        "steps": np.arange(count) * EVERY,
        "answers": labels if given is None else np.broadcast_to(np.asarray(given), labels.shape),
        "labels": labels,
        "right": labels.max(axis=1) if right is None else np.broadcast_to(np.asarray(right), size.shape),
        "cross_entropies": np.asarray(losses, float),
        "softmax_loss": softmax,
        "plain_loss": plain,
        "evaluation_steps": np.zeros(0, np.int64),
        "evaluation_answers": none,
        "evaluation_labels": none,
    }
    return PredictionFacts(**(given_facts | known))
