"""`examine`: checks a training pipeline before it trains, stage by stage."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from diagnostics.collectors.system.supported import require_supported
from diagnostics.errors import InvalidInput, what
from diagnostics.report.report import Report

from .walk import Walk

if TYPE_CHECKING:
    from diagnostics.collectors.shared.pipeline import Pipeline


def examine(
    target: Any,
    loader: Any = None,
    loss_fn: Any = None,
    optimizer: Any = None,
    *,
    evaluation: Any = None,
    check_reproducible: bool = False,
) -> Report:
    """Check a training pipeline before it trains, and report what is wrong with it.

    Checks the dataset, a batch, forward and loss, backward, an optimizer step, overfitting one batch, and the
    evaluation metric, in this order. Stops at the first error, because later results would be meaningless.
    Weights, optimizer state, data order and random states stay bit-for-bit unchanged: only copies are run and
    trained. At most 512 rows and a few batches are read, one of them three times on copies of the data, to check
    whether reading changes it. If there is an evaluation set, as many training rows as two seconds allow (20,000
    at most) are also read, to compare them with it.

        report = diagnostics.examine(trainer)
        report = diagnostics.examine(model, loader, loss_fn, optimizer)
        report = diagnostics.examine(keras_model, dataset)
        report = diagnostics.examine(lightning_module, loader)  # or a LightningDataModule
        report = diagnostics.examine(learn)  # a Learner of fastai
        report.raise_if("error")

    Args:
        target: a `transformers.Trainer`; a `torch.nn.Module`; a compiled `keras.Model` on TensorFlow; a fastai
            `Learner`, which has its own data, loss and optimizer; or a `LightningModule`, whose `training_step`
            and `configure_optimizers` are called on copies, with anything they log discarded. With manual
            optimization, only its data and optimizers are checked.
        loader: for a module: a `DataLoader`, or anything that can be iterated more than once and yields batches. A
            batch is (inputs, target), a longer tuple with the target last, a dict, or one tensor. For a Keras
            model: a `tf.data.Dataset`, a `keras.utils.PyDataset`, arrays ``(x, y)`` or ``(x, y, sample_weight)``,
            or a list of batches. A dataset made by `from_generator` is rejected, because reading it may remove
            rows from training. Pass some of its batches, ``list(dataset.take(4))``, if it starts over each time.
            For a LightningModule: a loader; a `LightningDataModule`, a copy of which prepares its data and is set
            up as by `fit`; or None if the module has its own `train_dataloader`.
        loss_fn: for a module: called as ``loss_fn(prediction, target)``. None if the module returns its loss.
        optimizer: for a module: read, never stepped. None: rules about the optimizer are not checked.
        evaluation: the evaluation data, of the same kind as `loader`, to compare with the training data. A Trainer
            has its own, and so may a LightningDataModule.
        check_reproducible: also run one step twice from the same state and seeds, on copies, and report the first
            difference. PyTorch only.

    Returns:
        A `Report`. It explains exceptions in the user's code; they are not raised.

    Raises:
        InvalidInput: the arguments cannot be examined.
    """
    from diagnostics.report.build import finished

    pipeline = pipeline_for("examine", target, loader, loss_fn, optimizer, evaluation)
    return finished(Walk(pipeline, check_reproducible).report())


def pipeline_for(
    call: str, target: Any, loader: Any = None, loss_fn: Any = None, optimizer: Any = None, evaluation: Any = None
) -> Pipeline:
    """Return the pipeline of the arguments of `examine`, or of another function with the same arguments.

    Args:
        call: the name of that function.
        target: see `examine`; likewise for the following arguments.
        loader: loader of the training data.
        loss_fn: loss of a PyTorch model.
        optimizer: optimizer of a PyTorch model.
        evaluation: the evaluation data.

    Raises:
        InvalidInput: there is none.
    """
    # An object of a framework exists only if the framework was imported, so nothing is imported here.
    trainers, torch = sys.modules.get("transformers.trainer"), sys.modules.get("torch")
    if trainers is not None and isinstance(target, getattr(trainers, "Trainer", ())):
        require_supported("transformers")
        _alone(call, "Trainer", "trainer", loader, loss_fn, optimizer, evaluation)
        from diagnostics.collectors.transformers.pipeline import TrainerPipeline

        return TrainerPipeline(target)
    from diagnostics.collectors.keras.examine.build import is_keras_model, keras_pipeline

    if is_keras_model(target):
        require_supported("keras")
        return keras_pipeline(target, loader, loss_fn, optimizer, evaluation, call=call)
    require_supported("torch")
    from diagnostics.collectors.lightning.kinds import is_datamodule, is_module, is_trainer

    if is_trainer(target):
        raise InvalidInput(
            f"{call}() was given a Lightning Trainer. Pass what its fit gets: {call}(module, loader) or "
            f"{call}(module, datamodule)."
        )
    if is_module(target) and loss_fn is None and optimizer is None:
        from diagnostics.collectors.lightning.pipeline import LightningPipeline

        return LightningPipeline(call, target, loader, evaluation)
    if "fastai.learner" in sys.modules:
        from diagnostics.collectors.fastai import LearnerPipeline, is_learner

        if is_learner(target):
            _alone(call, "Learner", "learn", loader, loss_fn, optimizer, evaluation)
            return LearnerPipeline(target)
    if torch is not None and isinstance(target, torch.nn.Module):
        if loader is None:
            raise InvalidInput(
                f"{call}() was given the model {type(target).__name__} and no data. Pass the loader of the "
                f"training loop: {call}(model, loader, loss_fn, optimizer)."
            )
        from diagnostics.collectors.pytorch.data import not_batches

        if (why := not_batches(loader)) is not None:
            raise InvalidInput(f"{call}() was given {what(loader)} as data{why}")
        if loss_fn is not None and not callable(loss_fn):
            raise InvalidInput(
                f"{call}() was given {what(loss_fn)} as loss_fn, which cannot be called. Pass a function of "
                "(prediction, target), such as torch.nn.CrossEntropyLoss()."
            )
        if isinstance(loss_fn, type) and issubclass(loss_fn, torch.nn.Module):
            raise InvalidInput(
                f"{call}() was given {what(loss_fn)}, as loss_fn. Create one first: {loss_fn.__name__}()."
            )
        if optimizer is not None and not hasattr(optimizer, "param_groups"):
            raise InvalidInput(
                f"{call}() was given {what(optimizer)} as optimizer, which has no param_groups. Pass a "
                "torch.optim.Optimizer."
            )
        from diagnostics.collectors.pytorch.examine.pipeline import PyTorchPipeline

        return PyTorchPipeline(target, loader, loss_fn, optimizer, evaluation)
    calls = f"{call}(trainer), {call}(model, loader, loss_fn, optimizer) or {call}(model, dataset)"
    if is_datamodule(target):
        calls = f"{call}(module, datamodule)"
    raise InvalidInput(
        f"{call}() was given {what(target)}. It takes a Hugging Face Trainer, or a PyTorch model or a compiled "
        f"Keras model with its data: {calls}."
    )


def _alone(call: str, kind: str, name: str, *others: Any) -> None:
    if any(argument is not None for argument in others):
        raise InvalidInput(
            f"{call}() was given a {kind} and further arguments. A {kind} has its own data, loss and optimizer: "
            f"{call}({name})."
        )
