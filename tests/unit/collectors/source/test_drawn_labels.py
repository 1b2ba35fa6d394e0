"""Labels that a script draws at random, and of which it makes nothing but targets."""

import pytest

from tests.support.sources import names_and_lines


def drawn(source):
    return names_and_lines("drawn_labels", source)


@pytest.mark.parametrize(
    "source",
    [
        """
        x, y = torch.randn(900, 40), torch.randint(0, 4, (900,))
        train = DataLoader(TensorDataset(x[:400], y[:400]), batch_size=40)
        test = DataLoader(TensorDataset(x[400:], y[400:]), batch_size=100)
        """,
        """
        y = rng.integers(0, 4, size=400).astype("int64")
        model.fit(x[:200], y[:200], validation_data=(x[200:], y[200:]))
        """,
        """
        y = np.random.randint(0, 2, 400)
        model.fit(x, y=y, epochs=3)
        """,
        """
        y = np.random.randint(0, 2, 400)
        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
        """,
    ],
)
def test_finds_labels_given_to_a_data_set_or_to_fit(source):
    ((name, *_),) = drawn(source)
    assert name == "y"


@pytest.mark.parametrize(
    "source",
    [
        # inputs are made of the labels
        """
        y = torch.randint(0, 4, (900,))
        x = centres[y] + torch.randn(900, 2)
        data = TensorDataset(x, y)
        """,
        """
        y = rng.integers(0, 4, size=900)
        x = make_images(y)
        model.fit(x, y)
        """,
        """
        y = rng.integers(0, 4, size=900)
        for row, label in enumerate(y):
            x[row, label] += 1
        model.fit(x, y)
        """,
        # labels are made of the inputs
        """
        y = (x[:, 0] > 0).long()
        model.fit(x, y)
        """,
        # what is drawn is the inputs
        """
        x = rng.integers(0, 4, size=(900, 12))
        model.fit(x, y)
        """,
        # drawn, and then changed
        """
        y = rng.integers(0, 4, size=900)
        y[x[:, 0] > 0] = 3
        model.fit(x, y)
        """,
    ],
)
def test_says_nothing_of_labels_that_inputs_may_depend_on(source):
    assert not drawn(source)
