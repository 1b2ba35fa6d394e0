"""Data that is held out and never used, as the source of a script shows it."""

import pytest

from tests.support.sources import found as found_in


def unread(source):
    return [one.names[:3] for one in found_in("unread_splits", source)]


class TestLoaders:
    SOURCE = """
        train_set, val_set = random_split(data, [800, 200])
        train_loader = DataLoader(train_set, batch_size=8, shuffle=True)
        val_loader = DataLoader(train_set, batch_size=8)
    """

    def test_a_validation_loader_of_the_training_part(self):
        assert unread(self.SOURCE) == [("val_set", "train_set", "val_loader")]

    @pytest.mark.parametrize(
        "change",
        [
            ("val_loader = DataLoader(train_set", "val_loader = DataLoader(val_set"),
            ("val_loader =", "train_eval_loader ="),
            ("val_loader = DataLoader(train_set, batch_size=8)", "val_loader = None"),
            ("train_set, val_set", "train_set, _"),
            ("val_loader = DataLoader(train_set, batch_size=8)", "print(len(val_set))"),
        ],
    )
    def test_neighbours_that_are_right(self, change):
        assert change[0] in self.SOURCE
        assert unread(self.SOURCE.replace(*change)) == []

    def test_of_datasets_that_are_made_one_by_one(self):
        source = """
            train_data, test_data = ImageFolder("train"), None
            test_dataset = ImageFolder("test")
            train_dataset = ImageFolder("train")
            train_loader = DataLoader(dataset=train_dataset, shuffle=True)
            test_loader = DataLoader(dataset=train_dataset)
        """
        assert unread(source) == [("test_dataset", "train_dataset", "test_loader")]


class TestResults:
    SOURCE = """
        train_loader = DataLoader(train_set, shuffle=True)
        val_loader = DataLoader(val_set)
        for epoch in range(9):
            train(model, train_loader)
            val_loss, val_acc = evaluate(model, train_loader, criterion)
    """

    def test_a_validation_of_the_training_loader(self):
        assert unread(self.SOURCE) == [("val_loader", "train_loader", "val_loss")]

    def test_a_test_of_the_rows_of_the_fit(self):
        source = """
            (x_train, y_train), (x_test, y_test) = load_data()
            model.fit(x_train, y_train)
            test_loss, test_acc = model.evaluate(x_train, y_train)
        """
        assert unread(source) == [("x_test", "x_train", "test_loss")]

    @pytest.mark.parametrize(
        "change",
        [
            ("val_loss, val_acc =", "train_loss, train_acc ="),
            ("val_loss, val_acc =", "eval_loss, eval_acc ="),
            ("evaluate(model, train_loader", "evaluate(model, val_loader"),
            ("evaluate(model, train_loader", "evaluate(model, loaders[1]"),
            ("evaluate(model, train_loader", "evaluate(model, train_loader, val_loader"),
            ("val_loader = DataLoader(val_set)", "pass"),
        ],
    )
    def test_neighbours_that_are_right(self, change):
        assert change[0] in self.SOURCE
        assert unread(self.SOURCE.replace(*change)) == []


class TestWithoutNames:
    LOADERS = """
        a, b = random_split(data, [800, 200])
        c = DataLoader(a, shuffle=True)
        d = DataLoader(a)
    """

    def test_the_loader_that_does_not_shuffle(self):
        (found,) = found_in("unread_splits", self.LOADERS)
        assert (found.names, found.by_name) == (("b", "a", "d", "made"), False)

    @pytest.mark.parametrize(
        "source",
        [
            LOADERS.replace("d = DataLoader(a)", "d = DataLoader(a, shuffle=True)"),
            LOADERS.replace("d = DataLoader(a)", "d = DataLoader(b)"),
            LOADERS.replace("d = DataLoader(a)", "train_check = DataLoader(a)"),
            "x = np.array(rows)\nz = np.array(others)\nmodel.fit(x, y)\nresult = model.evaluate(x, y)",
        ],
    )
    def test_neighbours_that_are_right(self, source):
        assert unread(source) == []


class TestFunctions:
    SOURCE = """
        def validate(model, val_loader):
            total = 0
            with torch.no_grad():
                for x, y in train_loader:
                    total += loss(model(x), y)
            return total
    """

    @pytest.mark.parametrize("loop", ["train_loader", "tqdm(train_loader)", "enumerate(self.train_dataloader)"])
    def test_a_validation_that_ignores_its_loader(self, loop):
        source = self.SOURCE.replace("in train_loader", f"in {loop}")
        (found,) = unread(source)
        assert found == ("val_loader", loop.partition("(")[2].rstrip(")") or loop, "validate")

    @pytest.mark.parametrize(
        "change",
        [
            ("in train_loader", "in val_loader"),
            ("def validate", "def train_and_validate"),
            ("val_loader):", "loader):"),
            ("val_loader):", "val_loader, train_loader):"),
            ("total += loss(model(x), y)", "loss(model(x), y).backward()"),
            ("return total", "return total / len(val_loader)"),
        ],
    )
    def test_neighbours_that_are_right(self, change):
        assert change[0] in self.SOURCE
        assert unread(self.SOURCE.replace(*change)) == []
