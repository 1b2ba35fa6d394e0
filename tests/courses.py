"""Facts of a watched run, built from a few numbers, for the tests of the rules on its course."""

import numpy as np

from diagnostics.facts.training import HistoryFacts, PredictionFacts

EVERY = 20  # steps between two that are looked at


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
        "gradient_known": np.ones(count, bool),
        "learning_rates": np.broadcast_to(np.asarray(rates, float), count).reshape(-1, 1),
        "training_mode": np.ones(count, np.int8),
        "passes": np.ones(count, np.int64),
        "gradients_zeroed": np.ones(count, np.int8),
        "losses": None if losses is None else np.asarray(losses, float),
        "loss_known": None if losses is None else np.ones(count, bool),
        "batch_fingerprints": np.arange(1, count + 1, dtype=np.uint64) if prints is None else prints,
        "batch_sizes": np.full(count, 32),
        "sampled_steps": looked_at,
        "update_ratios": np.broadcast_to(np.asarray(update)[..., None], (len(looked_at), 2)).astype(np.float32),
        "weight_norms": np.broadcast_to(np.asarray(norms)[..., None], (len(looked_at), 2)).astype(np.float32),
    }
    return HistoryFacts(**(given | known))


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
