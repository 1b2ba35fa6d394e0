"""What a script may do with its model in the middle of a training does the same where the library looks on."""

import copy
import io

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.utils import prune
from torch.nn.utils.parametrizations import weight_norm
from torch.optim.swa_utils import AveragedModel
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from diagnostics.run.observer import ScriptObserver

INPUTS = torch.randn(64, 8, generator=torch.Generator().manual_seed(0))
LABELS = INPUTS[:, :3].argmax(1)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.dropout, self.head = nn.Linear(8, 16), nn.Dropout(0.1), nn.Linear(16, 3)

    def forward(self, inputs):
        return self.head(self.dropout(self.first(inputs).relu()))


def train(meanwhile=None, forward=lambda model, inputs: model(inputs)):
    """Return the losses. `meanwhile` gets model and optimizer after the sixth step, and may return another."""
    torch.manual_seed(0)
    model = Network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(12):
        optimizer.zero_grad()
        rows = torch.randperm(64)[:32]
        loss = nn.functional.cross_entropy(forward(model, INPUTS[rows]), LABELS[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step == 5 and meanwhile is not None:
            optimizer = meanwhile(model, optimizer) or optimizer
    return losses


def saves(model, optimizer):
    torch.save({"model": model, "optimizer": optimizer}, io.BytesIO())
    model.load_state_dict(copy.deepcopy(model).state_dict())
    copy.copy(model)(INPUTS)


def averages(model, _optimizer):
    averaged = AveragedModel(model)
    averaged.update_parameters(model)
    averaged(INPUTS)


def traces(model, _optimizer):
    torch.jit.trace(model.eval(), INPUTS)
    torch.fx.symbolic_trace(model)(INPUTS)
    model.train()


def scripts(model, _optimizer):
    torch.jit.script(model)(INPUTS)


def differentiates_by_row(model, _optimizer):
    weights = {name: weight.detach() for name, weight in model.eval().named_parameters()}

    def loss(weights, row, label):
        return nn.functional.cross_entropy(functional_call(model, weights, (row[None],)), label[None])

    vmap(grad(loss), in_dims=(None, 0, 0))(weights, INPUTS[:4], LABELS[:4])
    model.train()


def counts_operations(model, optimizer):
    with FlopCounterMode(display=False):
        model(INPUTS).sum().backward()
    optimizer.zero_grad()


def listens_by_itself(model, _optimizer):
    handles = [module.register_forward_hook(lambda *_: None) for module in model.modules()]
    model(INPUTS)
    for handle in handles:
        handle.remove()


def replaces_the_head(model, _optimizer):
    model.head = nn.Linear(16, 3)
    return torch.optim.Adam(model.parameters(), lr=0.01)


def normalizes_a_weight(model, _optimizer):
    weight_norm(model.first)
    return torch.optim.Adam(model.parameters(), lr=0.01)


def freezes(model, _optimizer):
    model.first.requires_grad_(False)


def prunes(model, _optimizer):
    prune.l1_unstructured(model.first, "weight", 0.3)


def recomputed(model, inputs):
    return checkpoint(model, inputs, use_reentrant=False)


def in_bfloat16(model, inputs):
    with torch.autocast("cpu", torch.bfloat16):
        return model(inputs).float()


MEANWHILE = [
    saves, averages, traces, scripts, differentiates_by_row, counts_operations, listens_by_itself, freezes, prunes,
    replaces_the_head, normalizes_a_weight,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
class TestRun:
    def same(self, **training):
        """Train alone and looked at, and return what was watched."""
        alone, run = train(**training), ScriptObserver()
        try:
            assert train(**training) == alone
            reports = run.watched()
        finally:
            run.close()
        assert run.faults == []
        assert [(report.findings, report.faults) for report in reports] == [((), ())] * len(reports)
        return [report.title for report in reports]

    @pytest.mark.parametrize("meanwhile", MEANWHILE, ids=lambda function: function.__name__)
    def test_leaves_a_script_alone_that(self, meanwhile):
        # Another optimizer is another training.
        parts = [6, 6] if meanwhile in (replaces_the_head, normalizes_a_weight) else [12]
        assert self.same(meanwhile=meanwhile) == [f"watched {steps} steps of Network" for steps in parts]

    @pytest.mark.parametrize("forward", [recomputed, in_bfloat16], ids=lambda function: function.__name__)
    def test_leaves_a_forward_pass_alone(self, forward):
        assert self.same(forward=forward) == ["watched 12 steps of Network"]

    def test_gives_no_advice_on_a_loss_that_only_a_call_of_watch_could_hand_over(self):
        def fails(model, inputs):
            raise ValueError(f"before the first loss of {len(model(inputs))}")

        run = ScriptObserver()
        try:
            with pytest.raises(ValueError, match="before the first loss"):
                train(forward=fails)
            (report,) = run.watched()
        finally:
            run.close()
        assert [(s.status, s.detail) for s in report.stages if s.name == "loss"] == [
            ("not judged", "none was seen")
        ]


@pytest.mark.slow
class TestFit:
    """An imbalanced set that a Keras model is fitted to, with something that makes up for it and without."""

    FEATURES = torch.randn(256, 4, generator=torch.Generator().manual_seed(0)).numpy()
    RARE = (FEATURES[:, 0] > 1.5).astype("int64")  # 11 of the 256

    @staticmethod
    def said(given, loss=None, **options):
        keras = pytest.importorskip("keras")
        pytest.importorskip("tensorflow")
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(2)])
        indices = keras.losses.SparseCategoricalCrossentropy
        loss = indices(from_logits=True) if loss is None else loss(indices)(from_logits=True)
        model.compile(keras.optimizers.Adam(1e-2), loss)
        run = ScriptObserver()
        try:
            model.fit(*given, verbose=0, **options)
        finally:
            run.close()
        assert run.faults == []
        (examined,) = run.examined
        return {finding.rule: finding.severity for finding in examined.findings}

    def test_without_class_weights_is_told_of_the_imbalance(self):
        assert self.said((self.FEATURES, self.RARE)) == {"class-imbalance": "warning"}

    def test_with_class_weights_is_not(self):
        assert self.said((self.FEATURES, self.RARE), class_weight={0: 1.0, 1: 12.0}) == {}

    @pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")
    def test_with_class_weights_for_a_dataset_is_not(self):
        tf = pytest.importorskip("tensorflow")
        rows = tf.data.Dataset.from_tensor_slices((self.FEATURES, self.RARE)).shuffle(256).batch(32)
        assert self.said((rows,), class_weight={0: 1.0, 1: 12.0}) == {}

    def test_with_a_weight_for_each_example_is_not(self):
        weights = 1.0 + 11.0 * self.RARE
        assert self.said((self.FEATURES, self.RARE), sample_weight=weights) == {}

    def test_with_arguments_by_place_may_have_class_weights(self):
        assert self.said((self.FEATURES, self.RARE, 32)) == {"class-imbalance": "note"}

    def test_with_a_loss_of_its_own_may_weigh_them_itself(self):
        def weighing(indices):
            return type(
                "Weighing", (indices,), {"call": lambda self, y, scores: super(type(self), self).call(y, scores)}
            )

        assert self.said((self.FEATURES, self.RARE), weighing) == {"class-imbalance": "note"}
