"""Experiments that change the model: its mode, its layers, its first weights."""

from __future__ import annotations

from diagnostics.text.join import listed

from .experiment import Experiment, Setup

NAMED = 3  # layers


class TrainingMode(Experiment):
    """All layers in training mode."""

    name = "training mode"

    def _objection(self, setup: Setup) -> str | None:
        return None if setup.layers("idle") else "no layer that depends on the mode is in evaluation mode"

    def _change(self, setup: Setup) -> None:
        setup.set_training_mode()

    def _phrase(self, setup: Setup) -> str:
        return "in training mode"

    def _fix(self, setup: Setup) -> str:
        if setup.library == "keras":
            return "model(x, training=True)"
        return "model.train()  # before the training loop, and after each evaluation"


class Unfrozen(Experiment):
    """Every weight trained."""

    name = "unfrozen"

    def _objection(self, setup: Setup) -> str | None:
        return None if setup.layers("frozen") else "every weight is trained"

    def _change(self, setup: Setup) -> None:
        setup.unfreeze()

    def _phrase(self, setup: Setup) -> str:
        return f"with the frozen layers unfrozen ({listed(setup.layers('frozen'), most=NAMED)})"

    def _fix(self, setup: Setup) -> str:
        if setup.library == "keras":
            return "layer.trainable = True, before model.compile"
        return "parameter.requires_grad = True for these layers, and give their parameters to the optimizer"


class WithoutLastActivation(Experiment):
    """The prediction without the activation that computes it; not where the loss expects probabilities."""

    name = "last activation removed"

    def _objection(self, setup: Setup) -> str | None:
        if setup.contract.reads not in ("logits", None) or setup.contract.targets not in (
            "classes",
            "shares",
            "numbers",
        ):
            return "the loss expects the result of the last activation"
        return None if setup.last_activation() else "the prediction is not the result of an activation"

    def _change(self, setup: Setup) -> None:
        setup.remove_last_activation()

    def _phrase(self, setup: Setup) -> str:
        return f"without the last {setup.last_activation()}"

    def _fix(self, setup: Setup) -> str:
        return f"remove the {setup.last_activation()} after the last layer"


class DefaultInitialisation(Experiment):
    """The first weights drawn as the framework does."""

    name = "default initialisation"

    def _objection(self, setup: Setup) -> str | None:
        return None if setup.layers("initialised") else "no layer can draw its first weights again"

    def _change(self, setup: Setup) -> None:
        setup.initialise()

    def _phrase(self, setup: Setup) -> str:
        return "with the default initialisation"

    def _fix(self, setup: Setup) -> str:
        if setup.library == "keras":
            return "leave out kernel_initializer, and set_weights, in the first training"
        return "leave out the custom initialisation: PyTorch's layers draw good first weights"


class _Without(Experiment):
    """No layers of one kind."""

    kind = ""

    def _objection(self, setup: Setup) -> str | None:
        return None if setup.layers(self.kind) else f"there is no {self.kind}"

    def _change(self, setup: Setup) -> None:
        setup.remove(self.kind)

    def _phrase(self, setup: Setup) -> str:
        return f"without {self.kind}"

    def _fix(self, setup: Setup) -> str:
        return f"remove the {self.kind}, or use less of it: {listed(setup.layers(self.kind), most=NAMED)}"


class WithoutDropout(_Without):
    """No dropout."""

    name, kind = "dropout off", "dropout"


class WithoutNormalisation(_Without):
    """No layers that normalise."""

    name, kind = "normalisation off", "normalisation"


class Float32(Experiment):
    """Weights and inputs in float32."""

    name = "float32"

    def _objection(self, setup: Setup) -> str | None:
        return None if setup.layers("half") else "the weights are not in half precision"

    def _change(self, setup: Setup) -> None:
        setup.to_float32()

    def _phrase(self, setup: Setup) -> str:
        return "in float32"

    def _fix(self, setup: Setup) -> str:
        if setup.library == "keras":
            return 'keras.mixed_precision.set_global_policy("float32")'
        return "model.float(), and torch.autocast(..., dtype=torch.bfloat16) instead of half precision weights"
