"""Probabilities of a model that the script casts to integers."""

import pytest

from tests.support import sources


def found(source):
    return [one.names[0] for one in sources.found("truncated_probabilities", source)]


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
