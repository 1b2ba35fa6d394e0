"""Models that a loop over epochs makes again."""

import pytest

from tests.support.sources import names_and_lines


def found(source):
    return [(model, loop, line) for model, loop, _, line in names_and_lines("recreated_models", source)]


@pytest.mark.parametrize(
    "made",
    ["Sequential([Dense(1)])", "keras.Model(inputs, outputs)", "build_model()", "keras.models.clone_model(base)"],
)
def test_a_model_made_in_the_loop_over_epochs(made):
    source = f"""
        for epoch in range(20):
            model = {made}
            model.compile("adam", "mse")
            model.fit(x, y, epochs=1)
    """
    assert found(source) == [("model", "epoch", 3)]


def test_by_a_function_of_the_script_or_by_a_class():
    source = """
        def build(units):
            return Sequential([Dense(units)])
        class Net(keras.Model):
            pass
        for ep in trange(range(9)):
            net = build(8)
            for i in range(10):
                net.train_on_batch(x, y)
        for ep in range(9):
            net = Net()
            net.fit(x, y)
    """
    assert found(source) == [("net", "ep", 7), ("net", "ep", 11)]


NET = """
class Net(nn.Module):
    pass
"""


@pytest.mark.parametrize("made", ["Net()", "Net(8).to(device)", "nn.Sequential(nn.Linear(2, 1)).cuda()"])
@pytest.mark.parametrize(
    "trained",
    [
        "for x, y in loader:\n        loss = mse(net(x), y)\n        loss.backward()\n        optimizer.step()",
        "train_one_epoch(net, loader)",
        "fit(loader, net)",
    ],
)
def test_a_model_of_pytorch(made, trained):
    assert found(f"{NET}for epoch in trange(20):\n    net = {made}\n    {trained}") == [("net", "epoch", 5)]


@pytest.mark.parametrize("drawn", ["net.apply(init_weights)", "net.apply(self.reset)", "net.reset_parameters()"])
def test_weights_that_are_drawn_again(drawn):
    source = f"for epoch in range(20):\n    {drawn}\n    loss = mse(net(x), y)\n    loss.backward()"
    assert names_and_lines("recreated_models", source) == [("net", "epoch", "weights", 2)]


@pytest.mark.parametrize(
    "source",
    [
        "for epoch in range(9):\n    net.apply(freeze_batch_norm)\n    mse(net(x), y).backward()",
        "for epoch in range(9):\n    net.apply(clipper)\n    mse(net(x), y).backward()",
        "for epoch in range(9):\n    if epoch in resets:\n        net.apply(init)\n    mse(net(x), y).backward()",
        "for epoch in range(9):\n    metric.reset_parameters()\n    mse(net(x), y).backward()",
        "for epoch in range(9):\n    teacher = Net()\n    train(net, loader)",
        "for run in range(9):\n    net.apply(init_weights)\n    train(net, loader)",
        "for epoch in range(9):\n    net = Net()\n    net.load_state_dict(best)\n    train(net, loader)",
        "for epoch in range(9):\n    hidden = net.init_hidden()\n    mse(net(x, hidden), y).backward()",
    ],
)
def test_nothing_else_of_pytorch(source):
    assert found(NET + source) == []


@pytest.mark.parametrize(
    "source",
    [
        "model = build_model()\nfor epoch in range(9):\n    model.fit(x, y)",
        "for epochs in range(10, 50, 10):\n    model = build_model()\n    model.fit(x, y, epochs=epochs)",
        "for epochs in [5, 10]:\n    model = build_model()\n    model.fit(x, y)",
        "for seed in range(5):\n    model = build_model()\n    model.fit(x, y)",
        "for fold in range(5):\n    model = Sequential()\n    model.fit(x[fold], y[fold])",
        "for epoch in range(9):\n    model = build_model()\n    model.load_weights(path)\n    model.fit(x, y)",
        "for epoch in range(9):\n    model = build_model(model)\n    model.fit(x, y)",
        "for epoch in range(9):\n    if epoch == 0:\n        model = build_model()\n    model.fit(x, y)",
        "for epoch in range(9):\n    probe = build_model()\n    model.fit(x, y)",
    ],
)
def test_nothing_else(source):
    assert found(source) == []
