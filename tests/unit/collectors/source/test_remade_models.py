"""Models that a loop over epochs makes again."""

import ast
from textwrap import dedent

import pytest

from diagnostics.collectors.source.remade_models import remade_models


def found(source):
    return [(model, loop, line) for model, loop, line, _ in remade_models(ast.parse(dedent(source)))]


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
