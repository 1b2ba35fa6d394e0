"""Inputs and targets that a script shuffles one after the other."""

import pytest

from tests.support.sources import names_and_lines


def apart(source):
    return names_and_lines("shuffled_apart", source)


class TestShuffledApart:
    @pytest.mark.parametrize(
        "source",
        [
            """
            np.random.shuffle(x)
            np.random.shuffle(y)
            model.fit(x[:900], y[:900], validation_data=(x[900:], y[900:]))
            """,
            """
            random.shuffle(x)
            random.shuffle(y)
            x_train, x_test, y_train, y_test = train_test_split(np.array(x), np.array(y), test_size=0.2)
            """,
            """
            rng.shuffle(x)
            rng.shuffle(y)
            train_y, train_x = y[:80], torch.tensor(x[:80])
            data = TensorDataset(train_x, torch.tensor(train_y))
            """,
            """
            x = np.random.permutation(x)
            y = np.random.permutation(y)
            data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
            """,
        ],
    )
    def test_inputs_and_targets_by_one_generator(self, source):
        assert apart(source) == [("x", "y", 3)]

    def test_in_a_function(self):
        source = """
            def train(images, labels):
                np.random.shuffle(images)
                np.random.shuffle(labels)
                model.fit(x=images, y=labels)
        """
        assert apart(source) == [("images", "labels", 4)]

    @pytest.mark.parametrize(
        "source",
        [
            """
            np.random.seed(1)
            np.random.shuffle(x)
            np.random.seed(1)
            np.random.shuffle(y)
            model.fit(x, y)
            """,
            """
            state = np.random.get_state()
            np.random.shuffle(x)
            np.random.set_state(state)
            np.random.shuffle(y)
            model.fit(x, y)
            """,
            """
            random.Random(4).shuffle(x)
            random.Random(4).shuffle(y)
            model.fit(x, y)
            """,
            """
            rng.shuffle(x)
            rng = np.random.default_rng(0)
            rng.shuffle(y)
            model.fit(x, y)
            """,
        ],
    )
    def test_one_order_for_both(self, source):
        assert apart(source) == []

    @pytest.mark.parametrize(
        "source",
        [
            """
            random.shuffle(train_files)
            random.shuffle(test_files)
            model.fit(load(train_files), validation_data=load(test_files))
            """,
            """
            np.random.shuffle(horses)
            np.random.shuffle(zebras)
            data = tf.data.Dataset.from_tensor_slices((horses, zebras))
            """,
            """
            np.random.shuffle(positive)
            np.random.shuffle(negative)
            x = np.concatenate([positive, negative])
            y = np.array([1] * len(positive) + [0] * len(negative))
            model.fit(x, y)
            """,
            """
            np.random.shuffle(x)
            np.random.shuffle(y)
            x, y = load()
            model.fit(x, y)
            """,
            """
            if augment:
                np.random.shuffle(x)
            else:
                np.random.shuffle(y)
            model.fit(x, y)
            """,
            """
            np.random.shuffle(order)
            np.random.shuffle(words)
            model.fit(x[order], y[order])
            """,
        ],
    )
    def test_lists_that_are_no_pairs(self, source):
        assert apart(source) == []
