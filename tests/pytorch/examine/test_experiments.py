"""Would it learn if one thing were different? Textbook bugs, and what `try_changes` says of them."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import diagnostics

ROWS, FEATURES, CLASSES, SIZE = 800, 12, 4, 40


def classes(scale=1.0, shift=0.0):
    centres = torch.randn(CLASSES, FEATURES) * 1.2
    y = torch.randint(0, CLASSES, (ROWS,))
    return (centres[y] + torch.randn(ROWS, FEATURES)) * scale + shift, y


def numbers(scale=1.0, shift=0.0):
    x = torch.randn(ROWS, FEATURES)
    return x, (x @ torch.randn(FEATURES, 1) / 3) * scale + shift


def batches(x, y, epochs=5):
    cuts = [slice(start, start + SIZE) for start in range(0, len(x), SIZE)]
    return [(x[cut], y[cut]) for cut in cuts * epochs]


def net(outputs=CLASSES, *last):
    return nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, outputs), *last)


class FunctionalEnd(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = net(1)

    def forward(self, x):
        return torch.relu(self.layers(x))


def zeroed(model):
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    return model


def frozen(model):
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name == "2.bias")
    return model


def in_evaluation_mode():
    """Return a model that cannot learn without the statistics of its batches: its inputs are small and shifted."""
    return nn.Sequential(nn.BatchNorm1d(FEATURES), *net()).eval()


def tried(model, loss, data, lr=0.1, kind=torch.optim.SGD, **options):
    held = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return diagnostics.try_changes(
        model, loss, batches(*data), kind(held, lr=lr, **options), steps=100, seconds=60
    )


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def best(*arguments, **options):
    return next((cure.name for cure in tried(*arguments, **options).cures), None)


CE = nn.CrossEntropyLoss()


class TestNamesTheCause:
    def test_a_learning_rate_that_is_far_too_low(self):
        result = tried(net(), CE, classes(), lr=1e-7)
        assert result.cures[0].name == "learning rate * 100,000"
        assert result.cures[0].fix == "torch.optim.SGD(model.parameters(), lr=0.01)"

    def test_a_learning_rate_that_is_far_too_high(self):
        assert best(net(), CE, classes(), lr=10.0, kind=torch.optim.Adam) in (
            "learning rate / 100",
            "learning rate / 1,000",
        )

    def test_pixels_that_are_not_scaled(self):
        assert best(net(), CE, classes(scale=25, shift=127)) == "inputs standardised"

    def test_targets_in_thousands(self):
        assert best(net(1), F.mse_loss, numbers(800, 5000), 1e-3, torch.optim.Adam) == "targets standardised"

    def test_weights_that_are_all_zero(self):
        model = zeroed(
            nn.Sequential(nn.Linear(FEATURES, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 4))
        )
        assert best(model, CE, classes()) == "default initialisation"

    @pytest.mark.parametrize("model", [lambda: net(1, nn.ReLU()), FunctionalEnd])
    def test_a_relu_at_the_end(self, model):
        assert best(model(), F.mse_loss, numbers(shift=-3)) == "last activation removed"

    def test_a_softmax_before_a_cross_entropy(self):
        assert best(net(CLASSES, nn.Softmax(dim=1)), CE, classes(), lr=0.005) == "last activation removed"

    def test_a_layer_norm_over_a_single_number(self):
        model = nn.Sequential(nn.Linear(FEATURES, 1), nn.LayerNorm(1), nn.Linear(1, 1))
        assert best(model, F.mse_loss, numbers()) == "normalisation off"

    def test_frozen_layers(self):
        assert best(frozen(net()), CE, classes()) == "unfrozen"

    def test_evaluation_mode(self):
        assert best(in_evaluation_mode(), CE, classes(scale=1e-3)) in ("training mode", "inputs standardised")

    def test_a_target_of_another_shape(self):
        x, y = numbers()
        assert best(net(1), F.mse_loss, (x, y[:, 0])) == "target shape aligned"

    def test_weight_decay(self):
        assert best(net(), CE, classes(), weight_decay=5.0) == "no weight decay"


class TestNamesNothing:
    @pytest.mark.parametrize("lr", [1e-3, 1e-2])
    def test_for_labels_that_were_shuffled(self, lr):
        x, y = classes()
        result = tried(net(), CE, (x, y[torch.randperm(ROWS)]), lr=lr, kind=torch.optim.Adam)
        assert result.cures == ()

    def test_for_a_model_that_learns(self):
        result = tried(net(), CE, classes())
        assert result.experiments is None
        assert "an unchanged copy does learn" in str(result)

    def test_where_the_loss_is_not_finite(self):
        assert "not finite" in tried(net(), CE, classes(scale=1e20), lr=100.0).reason


class TestResult:
    def test_says_both_losses_and_draws_them(self):
        result = tried(net(), CE, classes(scale=25, shift=127))
        cure, found = result.cures[0], result.experiments
        assert str(result).startswith(
            f"With standardised inputs, training for 100 steps reaches a loss of {cure.reached:.4g} instead of "
            f"{found.without:.4g}: "
        )
        assert cure.reached < 0.5 * found.constant < found.without
        assert "with standardised inputs" in result._repr_html_()
        assert "polyline" in result._repr_html_()

    def test_leaves_model_optimizer_and_random_states_alone(self):
        model = nn.Sequential(*net(), nn.Dropout(0.5))
        data, optimizer = batches(*classes(scale=25, shift=127)), torch.optim.SGD(model.parameters(), lr=0.1)
        before, states = copy.deepcopy(model.state_dict()), torch.get_rng_state()
        diagnostics.try_changes(model, CE, data, optimizer, steps=40)
        assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
        assert torch.equal(torch.get_rng_state(), states)
        assert optimizer.state == {}
        assert all(parameter.grad is None for parameter in model.parameters())

    def test_takes_a_function_that_makes_the_model(self):
        result = diagnostics.try_changes(lambda: zeroed(net()), CE, batches(*classes(scale=1e-6)), steps=40)
        assert result.experiments is not None

    @pytest.mark.parametrize(
        "arguments", [("model", CE, []), (lambda: 1, CE, []), (net(), 1, [])], ids=["text", "number", "loss"]
    )
    def test_refuses_what_it_cannot_use(self, arguments):
        with pytest.raises(diagnostics.InvalidInput, match="try_changes"):
            diagnostics.try_changes(*arguments)

    def test_says_why_nothing_could_be_tried(self):
        assert "too few" in tried(net(), CE, tuple(part[:80] for part in classes())).reason
