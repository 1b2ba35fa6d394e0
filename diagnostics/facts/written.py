"""What a script says and nothing does: in its source, or by attributes that nothing reads. No framework."""

from __future__ import annotations

from typing import ClassVar, Literal

from diagnostics.facts.frozen import frozen

from .where import Where

Holder = Literal["module", "parameter", "optimizer", "subset", "loader"]


@frozen
class KeptModel:
    """A loop that trains a model and keeps the best one under a second name, for use after the loop.

    Attributes:
        kept: the second name: ``best_model``.
        model: the name of the model: ``model``; of a container without copies, what it is made of.
        where: the line that keeps it.
    """

    kept: str
    model: str
    where: Where


@frozen
class UnreadSplit:
    """Data that is held out and never used, while the evaluation reads what the model is trained on.

    Attributes:
        unread: the name of the data that is never used: ``val_set``.
        read: the name of what is read instead: ``train_set``.
        loader: what reads it: ``val_loader``, ``val_accuracy``, or the function ``evaluate``.
        where: the line that does.
        how: whether that is a loader ``made`` of it, a result ``computed`` of it, or a function that has
            ``iterated`` over it, and not over what it was given.
    """

    unread: str
    read: str
    loader: str
    where: Where
    how: Literal["made", "computed", "iterated"] = "made"


@frozen
class ConstantArgmax:
    """An argmax over the last axis of a model's answers, of which there is one for each example: always 0.

    Attributes:
        of: what it is taken of, as written: ``outputs``.
        answers: the shape of the answers to a batch: (examples, 1).
        where: the line.
    """

    of: str
    answers: tuple[int, ...]
    where: Where


@frozen
class TruncatedAnswers:
    """Probabilities of a model that are cast to integers: each below 1 becomes 0.

    Attributes:
        of: what is cast, as written: ``model.predict(x_test)``.
        activation: that the model ends in: ``sigmoid``.
        where: the line.
    """

    of: str
    activation: str
    where: Where


@frozen
class RemadeModel:
    """A loop over epochs that makes its model in each of them, and trains it.

    Attributes:
        model: its name: ``model``.
        loop: the name of the loop: ``epoch``.
        where: the line that makes the model.
        weights: whether the model stays, and only its weights are drawn again.
    """

    model: str
    loop: str
    where: Where
    weights: bool = False


@frozen
class ConstantSeed:
    """A data set that seeds a global generator with one number for every row, and then draws from it.

    Attributes:
        generator: ``torch``, ``numpy.random`` or ``random``.
        seed: as written: ``42``, ``self.seed``.
        draw: the function that draws: ``torch.randn``.
        where: the line that seeds.
    """

    generator: str
    seed: str
    draw: str
    where: Where


@frozen
class SharedSetting:
    """A setting given to the data set beneath one part of it, and then, with another value, beneath another part.

    Attributes:
        first: the part whose setting is lost: ``train_set``.
        second: the other part: ``val_set``.
        name: of the attribute: ``transform``.
        lost: the first value, as written.
        kept: the second value, as written, which both parts have.
        where: the line of the second.
    """

    first: str
    second: str
    name: str
    lost: str
    kept: str
    where: Where


@frozen
class ShuffledApart:
    """Two lists that are shuffled one after the other, so in two orders, and are then inputs and targets.

    Attributes:
        first: the list that is shuffled first: ``images``.
        second: the other: ``labels``.
        where: the line that shuffles the second.
    """

    first: str
    second: str
    where: Where


@frozen
class RefittedScaler:
    """A scaler or an encoder of scikit-learn that is fitted again on the rows of the evaluation.

    Attributes:
        kind: its class: ``StandardScaler``.
        training: what it is fitted on for training, as written.
        evaluation: what it is fitted on for the evaluation, as written.
        where: the line of the second.
    """

    kind: str
    training: str
    evaluation: str
    where: Where


@frozen
class BackwardBest:
    """A comparison that keeps the highest loss, or the lowest score, as the best so far.

    Attributes:
        value: what is compared: ``val_loss``.
        best: what keeps it: ``best_loss``.
        rises: whether a rise counts as progress.
        where: the line.
    """

    value: str
    best: str
    rises: bool
    where: Where


@frozen
class MonitoredMode:
    """A callback of Lightning that looks for progress in a metric.

    Attributes:
        callback: its class: ``ModelCheckpoint``.
        monitored: the metric: ``val_acc``.
        waits_for_rise: whether it takes a rise for progress; a fall, if not.
        where: the line.
    """

    callback: str
    monitored: str
    waits_for_rise: bool
    where: Where


@frozen
class LostResult:
    """A statement that computes something and keeps it nowhere.

    Attributes:
        shown: the statement, as written.
        name: of what stays as it was.
        rebound: whether it is a parameter's name in a loop, which is given something else to stand for.
        where: the line.
    """

    shown: str
    name: str
    rebound: bool
    where: Where


@frozen
class CutTargets:
    """Inputs that were filtered, and their targets, that were not: they are paired by their places.

    Attributes:
        inputs: the name of the inputs: ``X``.
        targets: that of the targets: ``y``.
        shown: the statement that pairs them, as written: ``y = y[:len(X)]``.
        where: its line.
    """

    inputs: str
    targets: str
    shown: str
    where: Where


@frozen
class HalvedLogits:
    """Logits that are taken for probabilities.

    Attributes:
        of: the expression: ``output``.
        rounded: whether they are rounded; if not, they are compared with 0.5.
        where: the line.
    """

    of: str
    rounded: bool
    where: Where


@frozen
class WrittenFacts:
    """What stands in the script and the modules beside it that it has imported.

    Attributes:
        kept: models kept by reference.
        unread: splits that are never read.
        argmaxes: those that are always 0.
        seeds: those that are the same for every row.
        shared: settings of one part of a data set that another part overwrites.
        apart: inputs and targets in two orders.
        truncated: probabilities that are cast to integers.
        halved: logits of one output that are compared with 0.5, or rounded.
        remade: models that each epoch makes again.
        refitted: scalers that are fitted on both sides.
        backward: comparisons with the best in the wrong direction.
        lost: statements without effect.
        cut: targets of other rows than their inputs.
        modes: callbacks of Lightning that look for progress.
    """

    described: ClassVar[str] = "the source of the script"

    kept: tuple[KeptModel, ...] = ()
    unread: tuple[UnreadSplit, ...] = ()
    argmaxes: tuple[ConstantArgmax, ...] = ()
    seeds: tuple[ConstantSeed, ...] = ()
    shared: tuple[SharedSetting, ...] = ()
    apart: tuple[ShuffledApart, ...] = ()
    truncated: tuple[TruncatedAnswers, ...] = ()
    halved: tuple[HalvedLogits, ...] = ()
    remade: tuple[RemadeModel, ...] = ()
    refitted: tuple[RefittedScaler, ...] = ()
    backward: tuple[BackwardBest, ...] = ()
    lost: tuple[LostResult, ...] = ()
    cut: tuple[CutTargets, ...] = ()
    modes: tuple[MonitoredMode, ...] = ()


@frozen
class IdleSetting:
    """One such attribute, where what it was to change is known to have stayed.

    Attributes:
        holder: what it was set on.
        kind: the class of that: ``Linear``.
        name: of the attribute: ``requires_grad``.
        value: what it was set to, as Python writes it.
        paths: of the modules or parameters, within the model; empty for the others.
        instead: of an optimizer, the rates that it used; of a subset, the value that its data set has.
        steps_on: the class of the optimizer that stepped on the parameters all the same; empty for the others.
    """

    holder: Holder
    kind: str
    name: str
    value: str
    paths: tuple[str, ...] = ()
    instead: str = ""
    steps_on: str = ""


@frozen
class SettingFacts:
    """The attributes without effect that were found on a model, its optimizers, or its training data.

    Attributes:
        idle: each with its holder.
    """

    described: ClassVar[str] = "attributes set on modules, optimizers and loaders"

    idle: tuple[IdleSetting, ...]
