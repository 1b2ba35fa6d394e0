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
        prediction: the name of this argument.
        target: likewise; None if there is no single one.
        aliases: other names: classes, and Keras' short forms.
    """

    targets: Targets | None = None
    reads: Reads | None = None
    kind: LossKind = "other"
    called: str = ""
    lowest: float | None = None
    class_axis: int | None = None
    prediction: str = "input"
    target: str | None = "target"
    aliases: tuple[str, ...] = ()


def _of_triplets(module: str) -> LossContract:
    return LossContract("triplets", prediction="anchor", target=None, aliases=(module,))


def _of_signs(module: str, prediction: str = "input") -> LossContract:
    return LossContract("signs", prediction=prediction, aliases=(module,))


def _of_keras(
    targets: Targets,
    kind: LossKind,
    called: str,
    *aliases: str,
    reads: Reads | None = None,
    class_axis: int | None = None,
) -> LossContract:
    return LossContract(targets, reads, kind, called, 0.0, class_axis, "y_pred", "y_true", aliases)


_ENTROPY, _BINARY = "cross entropy", "binary cross entropy"
_SQUARED, _ABSOLUTE = "squared error", "absolute error"

TORCH: Final[Mapping[str, LossContract]] = {
    "cross_entropy": LossContract(
        "classes", "logits", "cross_entropy", _ENTROPY, 0.0, 1, aliases=("CrossEntropyLoss",)
    ),
    "nll_loss": LossContract(
        "classes", "log_probabilities", "cross_entropy", _ENTROPY, None, 1, aliases=("NLLLoss",)
    ),
    "binary_cross_entropy": LossContract(
        "shares", "probabilities", "binary_cross_entropy", _BINARY, 0.0, aliases=("BCELoss",)
    ),
    "binary_cross_entropy_with_logits": LossContract(
        "shares", "logits", "binary_cross_entropy", _BINARY, 0.0, aliases=("BCEWithLogitsLoss",)
    ),
    "mse_loss": LossContract("numbers", None, "mean_squared_error", _SQUARED, 0.0, aliases=("MSELoss",)),
    "l1_loss": LossContract("numbers", None, "mean_absolute_error", _ABSOLUTE, 0.0, aliases=("L1Loss",)),
    "smooth_l1_loss": LossContract("numbers", None, "other", _ABSOLUTE, 0.0, aliases=("SmoothL1Loss",)),
    "huber_loss": LossContract("numbers", None, "other", _ABSOLUTE, 0.0, aliases=("HuberLoss",)),
    "kl_div": LossContract(
        "distribution", "log_probabilities", "other", "KL divergence", 0.0, aliases=("KLDivLoss",)
    ),
    "cosine_embedding_loss": _of_signs("CosineEmbeddingLoss", "input1"),
    "hinge_embedding_loss": _of_signs("HingeEmbeddingLoss"),
    "margin_ranking_loss": _of_signs("MarginRankingLoss", "input1"),
    "soft_margin_loss": _of_signs("SoftMarginLoss"),
    "triplet_margin_loss": _of_triplets("TripletMarginLoss"),
    "triplet_margin_with_distance_loss": _of_triplets("TripletMarginWithDistanceLoss"),
    "ctc_loss": LossContract(
        "labels",
        "log_probabilities",
        class_axis=-1,
        prediction="log_probs",
        target="targets",
        aliases=("CTCLoss",),
    ),
    "poisson_nll_loss": LossContract("counts", "log_rates", aliases=("PoissonNLLLoss",)),
}
"""By the name of the function in `torch.nn.functional`."""

KERAS: Final[Mapping[str, LossContract]] = {
    "sparse_categorical_crossentropy": _of_keras("classes", "cross_entropy", _ENTROPY, class_axis=-1),
    "categorical_crossentropy": _of_keras("distribution", "cross_entropy", _ENTROPY, class_axis=-1),
    "binary_crossentropy": _of_keras("shares", "binary_cross_entropy", _BINARY, "bce"),
    "mean_squared_error": _of_keras("numbers", "mean_squared_error", _SQUARED, "mse"),
    "mean_absolute_error": _of_keras("numbers", "mean_absolute_error", _ABSOLUTE, "mae"),
    "mean_squared_logarithmic_error": _of_keras("numbers", "other", _SQUARED),
    "kl_divergence": _of_keras(
        "distribution",
        "other",
        "KL divergence",
        "kld",
        "KLD",
        "kullback_leibler_divergence",
        reads="probabilities",
        class_axis=-1,
    ),
}
"""By the name of the function in `keras.losses`."""

_FUNCTIONS: Final = {alias: name for name, row in {**TORCH, **KERAS}.items() for alias in (name, *row.aliases)}


def function_of(name: str) -> str:
    """Return the function that a loss is a class or a short form of; other names as they are."""
    return _FUNCTIONS.get(name, name)


def contract_of(name: str) -> LossContract:
    """Return what is known of a loss, by any of its names; an empty contract for others."""
    function = function_of(name)
    return TORCH.get(function) or KERAS.get(function) or LossContract()


def functions_for(*targets: Targets) -> tuple[str, ...]:
    """Return the names of PyTorch's losses with such targets."""
    return tuple(name for name, row in TORCH.items() if row.targets in targets)
