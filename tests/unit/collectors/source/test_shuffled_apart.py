"""Inputs and targets that a script shuffles one after the other."""

import pytest

from tests.support.sources import found, names_and_lines


def apart(source):
    return names_and_lines("shuffled_apart", source)


def is_sure(source):
    return [not one.by_name for one in found("shuffled_apart", source)]


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

    @pytest.mark.parametrize(
        ("source", "lists"),
        [
            ("x = x[rng.permutation(len(x))]\ny = y[rng.permutation(len(y))]\nmodel.fit(x, y)", ("x", "y", 2)),
            ("x, y = x[rng.permutation(n)], y[rng.permutation(n)]\nmodel.fit(x, y)", ("x", "y", 1)),
            (
                """
                first, second = torch.randperm(n), torch.randperm(n)
                mixed = x[first]
                labels = y[second]
                model.fit(mixed, labels)
                """,
                ("x", "y", 4),
            ),
            (
                """
                order = torch.randperm(n, generator=g)
                train_x, test_x = x[order[:80]], x[order[80:]]
                order = torch.randperm(n, generator=g)
                train_y, test_y = y[order[:80]], y[order[80:]]
                model.fit(train_x, train_y)
                """,
                ("x", "y", 5),
            ),
            (
                """
                table = table.sample(frac=1).reset_index(drop=True)
                labels = labels.sample(frac=1).to_numpy()
                model.fit(table, labels)
                """,
                ("table", "labels", 3),
            ),
            ("x = tf.random.shuffle(x)\ny = tf.random.shuffle(y)\nmodel.fit(x, y)", ("x", "y", 2)),
        ],
        ids=["two draws", "one line", "named orders", "split by two orders", "tables", "copies"],
    )
    def test_of_two_drawn_orders(self, source, lists):
        assert apart(source) == [lists]
        assert is_sure(source) == [True]

    @pytest.mark.parametrize(
        "use",
        [
            """
class Rows(Dataset):
    def __getitem__(self, i):
        return self.first[i], self.second[i]

data = Rows(x[:80], y[:80])
            """,
            """
def train(first, second):
    for rows in order.split(8):
        loss = criterion(model(first[rows]), second[rows])

train(x, torch.tensor(y))
            """,
            'data = Dataset.from_dict({"x": x, "labels": y})',
            "data = list(zip(x, y))",
            """
for rows in batches:
    loss = criterion(model(x[rows]), y[rows])
            """,
        ],
        ids=["a class", "a function", "columns", "pairs", "one index for both"],
    )
    def test_that_may_belong_together(self, use):
        source = f"x = x[rng.permutation(90)]\ny = y[rng.permutation(90)]\n{use}"
        assert apart(source) == [("x", "y", 2)]
        assert is_sure(source) == [False]

    def test_of_two_sets_of_inputs_may_belong_together(self):
        source = """
            np.random.shuffle(horses)
            np.random.shuffle(zebras)
            data = tf.data.Dataset.from_tensor_slices((horses, zebras))
        """
        assert is_sure(source) == [False]

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
            """
            order = rng.permutation(len(x))
            x = x[order]
            y = y[order]
            model.fit(x, y)
            """,
            """
            torch.manual_seed(0)
            x = x[torch.randperm(n)]
            torch.manual_seed(0)
            y = y[torch.randperm(n)]
            model.fit(x, y)
            """,
            """
            x = x[np.random.default_rng(0).permutation(n)]
            y = y[np.random.default_rng(0).permutation(n)]
            model.fit(x, y)
            """,
            """
            table = table.sample(frac=1, random_state=3)
            labels = labels.sample(frac=1, random_state=3)
            model.fit(table, labels)
            """,
            """
            order = rng.permutation(n)
            order = list(range(n))
            x = x[order]
            y = y[rng.permutation(n)]
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
            positive = positive[rng.permutation(80)]
            negative = negative[rng.permutation(80)]
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
