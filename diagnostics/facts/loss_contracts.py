"""The losses of PyTorch and Keras: what each reads, and the targets that it is made for.

A loss that a rule should know is a row here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from .frozen import frozen

if TYPE_CHECKING:
    from .pipeline import LossKind, Reads

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
        targets: None if not known.
        reads: what it takes the prediction to be; None for plain numbers, or if a setting decides.
        kind: of the loss, for `LossFacts`.
        called: in messages.
        lowest: value that it can have if the arguments are right; None if that is not checked: a negative
            log-likelihood falls below 0 where densities are above 1.
        class_axis: of the prediction; None if it has none.
        module: the class of the same loss.
        aliases: other names of the function.
        prediction: the name of this argument.
        target: likewise; None if there is no single one.
    """

    targets: Targets | None = None
    reads: Reads | None = None
    kind: LossKind = "other"
    called: str = ""
    lowest: float | None = None
    class_axis: int | None = None
    module: str = ""
    aliases: tuple[str, ...] = ()
    prediction: str = "input"
    target: str | None = "target"


_ENTROPY, _BINARY, _DIVERGENCE = "cross entropy", "binary cross entropy", "KL divergence"
_SQUARED, _ABSOLUTE = "squared error", "absolute error"

TORCH: Final[Mapping[str, LossContract]] = {
    "cross_entropy": LossContract(
        "classes", "logits", "cross_entropy", _ENTROPY, 0.0, 1, module="CrossEntropyLoss"
    ),
    "nll_loss": LossContract(
        "classes", "log_probabilities", "cross_entropy", _ENTROPY, class_axis=1, module="NLLLoss"
    ),
    "binary_cross_entropy": LossContract(
        "shares", "probabilities", "binary_cross_entropy", _BINARY, 0.0, module="BCELoss"
    ),
    "binary_cross_entropy_with_logits": LossContract(
        "shares", "logits", "binary_cross_entropy", _BINARY, 0.0, module="BCEWithLogitsLoss"
    ),
    "mse_loss": LossContract("numbers", None, "mean_squared_error", _SQUARED, 0.0, module="MSELoss"),
    "l1_loss": LossContract("numbers", None, "mean_absolute_error", _ABSOLUTE, 0.0, module="L1Loss"),
    "smooth_l1_loss": LossContract("numbers", None, "other", _ABSOLUTE, 0.0, module="SmoothL1Loss"),
    "huber_loss": LossContract("numbers", None, "other", _ABSOLUTE, 0.0, module="HuberLoss"),
    "kl_div": LossContract("distribution", "log_probabilities", "other", _DIVERGENCE, 0.0, module="KLDivLoss"),
    "cosine_embedding_loss": LossContract("signs", module="CosineEmbeddingLoss", prediction="input1"),
    "hinge_embedding_loss": LossContract("signs", module="HingeEmbeddingLoss"),
    "margin_ranking_loss": LossContract("signs", module="MarginRankingLoss", prediction="input1"),
    "soft_margin_loss": LossContract("signs", module="SoftMarginLoss"),
    "triplet_margin_loss": LossContract("triplets", module="TripletMarginLoss", prediction="anchor", target=None),
    "triplet_margin_with_distance_loss": LossContract(
        "triplets", module="TripletMarginWithDistanceLoss", prediction="anchor", target=None
    ),
    "ctc_loss": LossContract(
        "labels",
        "log_probabilities",
        class_axis=-1,
        module="CTCLoss",
        prediction="log_probs",
        target="targets",
    ),
    "poisson_nll_loss": LossContract("counts", "log_rates", module="PoissonNLLLoss"),
}
"""By the name of the function in `torch.nn.functional`."""


def _keras(
    module: str,
    *aliases: str,
    targets: Targets,
    kind: LossKind = "other",
    called: str = "",
    reads: Reads | None = None,
) -> LossContract:
    """Return a row of a loss (y_true, y_pred); the functions that are not named in messages are not checked."""
    return LossContract(
        targets,
        reads,
        kind,
        called,
        0.0 if called else None,
        -1 if targets in ("classes", "distribution") else None,
        module,
        aliases,
        "y_pred",
        "y_true",
    )


KERAS: Final[Mapping[str, LossContract]] = {
    "sparse_categorical_crossentropy": _keras(
        "SparseCategoricalCrossentropy", targets="classes", kind="cross_entropy", called=_ENTROPY
    ),
    "categorical_crossentropy": _keras(
        "CategoricalCrossentropy", targets="distribution", kind="cross_entropy", called=_ENTROPY
    ),
    "categorical_focal_crossentropy": _keras("CategoricalFocalCrossentropy", targets="distribution"),
    "binary_crossentropy": _keras(
        "BinaryCrossentropy", "bce", targets="shares", kind="binary_cross_entropy", called=_BINARY
    ),
    "binary_focal_crossentropy": _keras("BinaryFocalCrossentropy", targets="shares"),
    "mean_squared_error": _keras(
        "MeanSquaredError", "mse", targets="numbers", kind="mean_squared_error", called=_SQUARED
    ),
    "mean_absolute_error": _keras(
        "MeanAbsoluteError", "mae", targets="numbers", kind="mean_absolute_error", called=_ABSOLUTE
    ),
    "mean_squared_logarithmic_error": _keras("MeanSquaredLogarithmicError", targets="numbers", called=_SQUARED),
    "kl_divergence": _keras(
        "KLDivergence",
        "kld",
        "KLD",
        "kullback_leibler_divergence",
        targets="distribution",
        called=_DIVERGENCE,
        reads="probabilities",
    ),
}
"""By the name of the function in `keras.losses`; whether cross entropies read logits is a setting."""

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
