"""The losses of PyTorch and Keras: what each reads, and the targets that it is made for.

A loss that a rule should know is a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from .frozen import frozen

Reads = Literal["logits", "probabilities", "log_probabilities", "log_rates"]
"""What a loss takes the prediction to be."""

LossKind = Literal["cross_entropy", "binary_cross_entropy", "mean_squared_error", "mean_absolute_error", "other"]

Targets = Literal["classes", "shares", "distribution", "numbers", "signs", "labels", "counts", "triplets"]
"""What a loss takes its targets to be.

- classes: an index for each example; PyTorch's also take a share for each class
- shares: numbers from 0 to 1
- distribution: numbers that add up to 1 over the classes
- signs: 1 and -1
- labels: a sequence of class indices, shorter than that of the predictions
- triplets: none; which of two examples is nearer to the first is said by the order of the arguments
"""


@frozen
class LossContract:
    """What a loss expects of its arguments.

    Attributes:
        module: the class of the same loss.
        targets: None if not known.
        reads: what it takes the prediction to be; None for plain numbers, or if a setting decides.
        kind: of the loss, for `LossFacts`.
        called: in messages.
        lowest: value that it can have if the arguments are right; None if that is not checked: a negative
            log-likelihood falls below 0 where densities are above 1.
        class_axis: of the prediction; None if it has none.
        prediction: the name of this argument.
        target: likewise; None if there is no single one.
        aliases: other names of the function.
    """

    module: str = ""
    targets: Targets | None = None
    reads: Reads | None = None
    kind: LossKind = "other"
    called: str = ""
    lowest: float | None = None
    class_axis: int | None = None
    prediction: str = "input"
    target: str | None = "target"
    aliases: tuple[str, ...] = ()


_Row = LossContract
_ENTROPY, _BINARY, _DIVERGENCE = "cross-entropy loss", "binary cross-entropy loss", "KL divergence"
_SQUARED, _ABSOLUTE = "squared error", "absolute error"
_LOGS: Final = "log_probabilities"
_KERAS_NAMES: Final = ("y_pred", "y_true")  # prediction and target

TORCH: Final[Mapping[str, LossContract]] = {
    "cross_entropy": _Row("CrossEntropyLoss", "classes", "logits", "cross_entropy", _ENTROPY, 0.0, 1),
    "nll_loss": _Row("NLLLoss", "classes", _LOGS, "cross_entropy", _ENTROPY, None, 1),
    "binary_cross_entropy": _Row("BCELoss", "shares", "probabilities", "binary_cross_entropy", _BINARY, 0.0),
    "binary_cross_entropy_with_logits": _Row(
        "BCEWithLogitsLoss", "shares", "logits", "binary_cross_entropy", _BINARY, 0.0
    ),
    "mse_loss": _Row("MSELoss", "numbers", None, "mean_squared_error", _SQUARED, 0.0),
    "l1_loss": _Row("L1Loss", "numbers", None, "mean_absolute_error", _ABSOLUTE, 0.0),
    "smooth_l1_loss": _Row("SmoothL1Loss", "numbers", None, "other", _ABSOLUTE, 0.0),
    "huber_loss": _Row("HuberLoss", "numbers", None, "other", _ABSOLUTE, 0.0),
    "kl_div": _Row("KLDivLoss", "distribution", _LOGS, "other", _DIVERGENCE, 0.0),
    "cosine_embedding_loss": _Row("CosineEmbeddingLoss", "signs", prediction="input1"),
    "hinge_embedding_loss": _Row("HingeEmbeddingLoss", "signs"),
    "margin_ranking_loss": _Row("MarginRankingLoss", "signs", prediction="input1"),
    "soft_margin_loss": _Row("SoftMarginLoss", "signs"),
    "triplet_margin_loss": _Row("TripletMarginLoss", "triplets", prediction="anchor", target=None),
    "triplet_margin_with_distance_loss": _Row(
        "TripletMarginWithDistanceLoss", "triplets", prediction="anchor", target=None
    ),
    "ctc_loss": _Row("CTCLoss", "labels", _LOGS, class_axis=-1, prediction="log_probs", target="targets"),
    "poisson_nll_loss": _Row("PoissonNLLLoss", "counts", "log_rates"),
}
"""By the name of the function in `torch.nn.functional`."""

KERAS: Final[Mapping[str, LossContract]] = {
    "sparse_categorical_crossentropy": _Row(
        "SparseCategoricalCrossentropy", "classes", None, "cross_entropy", _ENTROPY, 0.0, -1, *_KERAS_NAMES
    ),
    "categorical_crossentropy": _Row(
        "CategoricalCrossentropy", "distribution", None, "cross_entropy", _ENTROPY, 0.0, -1, *_KERAS_NAMES
    ),
    "categorical_focal_crossentropy": _Row(
        "CategoricalFocalCrossentropy", "distribution", prediction="y_pred", target="y_true"
    ),
    "binary_crossentropy": _Row(
        "BinaryCrossentropy", "shares", None, "binary_cross_entropy", _BINARY, 0.0, None, *_KERAS_NAMES, ("bce",)
    ),
    "binary_focal_crossentropy": _Row("BinaryFocalCrossentropy", "shares", prediction="y_pred", target="y_true"),
    "mean_squared_error": _Row(
        "MeanSquaredError", "numbers", None, "mean_squared_error", _SQUARED, 0.0, None, *_KERAS_NAMES, ("mse",)
    ),
    "mean_absolute_error": _Row(
        "MeanAbsoluteError", "numbers", None, "mean_absolute_error", _ABSOLUTE, 0.0, None, *_KERAS_NAMES, ("mae",)
    ),
    "mean_squared_logarithmic_error": _Row(
        "MeanSquaredLogarithmicError", "numbers", None, "other", _SQUARED, 0.0, None, *_KERAS_NAMES
    ),
    "kl_divergence": _Row(
        "KLDivergence",
        "distribution",
        "probabilities",
        "other",
        _DIVERGENCE,
        0.0,
        -1,
        *_KERAS_NAMES,
        ("kld", "KLD", "kullback_leibler_divergence"),
    ),
}
"""By the name of the function in `keras.losses`; whether a cross entropy reads logits is a setting."""

_FUNCTIONS: Final = {
    other: name for name, row in {**TORCH, **KERAS}.items() for other in (row.module, *row.aliases)
}


def function_of(name: str) -> str:
    """Return the function that a class or a short form stands for; other names as they are."""
    return _FUNCTIONS.get(name, name)


def contract_of(name: str) -> LossContract:
    """Return what is known of a loss, by any of its names; an empty contract for others."""
    function = function_of(name)
    return TORCH.get(function) or KERAS.get(function) or LossContract()


def functions_for(*targets: Targets) -> tuple[str, ...]:
    """Return the names of PyTorch's losses with such targets."""
    return tuple(name for name, row in TORCH.items() if row.targets in targets)
