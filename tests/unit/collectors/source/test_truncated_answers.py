"""Probabilities of a model that the script casts to integers."""

import ast

import pytest

from diagnostics.collectors.source.read import written_facts
from diagnostics.collectors.source.truncated_answers import truncated_answers


def found(source):
    return [of for of, _, _ in truncated_answers(ast.parse(source))]


@pytest.mark.parametrize(
    ("source", "of"),
    [
        ("classes = model.predict(x).astype(int)", "model.predict(x)"),
        ("p = model.predict(x)\nclasses = p.astype('int32')", "p"),
        ("p = model.predict(x)\np = p.astype(np.int64)", "p"),
        ("classes = tf.cast(model.predict(x), tf.int32)", "model.predict(x)"),
        ("classes = net(x).int()", "net(x)"),
        ("ann.compile(loss='mse')\nclasses = ann.predict(x).astype(int)", "ann.predict(x)"),
    ],
)
def test_are_found(source, of):
    assert found(source) == [of]


@pytest.mark.parametrize(
    "source",
    [
        "classes = (model.predict(x) > 0.5).astype(int)",
        "classes = np.round(model.predict(x)).astype(int)",
        "p = model.predict(x)\np[p > 0.5] = 1\nclasses = p.astype(int)",  # a threshold in place
        "p = model.predict(x)\np = np.rint(p)\nclasses = p.astype(int)",
        "p = model.predict(x)\np *= 255\npixels = p.astype(np.uint8)",
        "pixels = (255 * model.predict(x)).astype(np.uint8)",
        "classes = model.predict(x).argmax(1).astype(int)",
        "classes = trees.predict(x).astype(int)",  # of scikit-learn
        "p = model.predict(x).astype('float32')",
        "first = one_model.predict(x)\nclasses = other_model.predict(x).astype(int)",
    ],
)
def test_of_nothing_else(source):
    assert found(source) == []


def test_only_where_the_model_ends_in_probabilities(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("classes = model.predict(x).astype(int)")
    assert [one.activation for one in written_facts([str(script)], (16, 1), "sigmoid").truncated] == ["sigmoid"]
    for activation in (None, "linear", "relu"):
        assert written_facts([str(script)], (16, 1), activation).truncated == ()
