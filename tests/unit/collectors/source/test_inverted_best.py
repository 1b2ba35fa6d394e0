"""Comparisons with the best result so far."""

import pytest

from tests.support.sources import found, names_and_lines


def backward(source):
    return names_and_lines("inverted_best", source)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (
            """
            class EarlyStopping:
                def __call__(self, val_loss):
                    if self.best is None or val_loss > self.best:
                        self.best = val_loss
            stopper(val_loss)
            """,
            ("val_loss", "self.best", "rise", 4),
        ),
        (
            """
            if val_acc < best_acc and epoch > 2:
                best_acc, best_epoch = val_acc, epoch
            """,
            ("val_acc", "best_acc", "fall", 2),
        ),
        (
            """
            if valid_loss < min_loss:
                waited += 1
            else:
                min_loss = valid_loss
            """,
            ("valid_loss", "min_loss", "rise", 2),
        ),
        ("best_loss = max(loss.item(), best_loss)", ("loss", "best_loss", "rise", 1)),
        (
            """
            if best < metrics["eval_loss"]:
                best = metrics["eval_loss"]
            """,
            ("eval_loss", "best", "rise", 2),
        ),
    ],
)
def test_names_the_wrong_direction(source, expected):
    assert backward(source) == [expected]


@pytest.mark.parametrize(
    "source",
    [
        "if val_loss < best_loss:\n    best_loss = val_loss",
        "if val_acc > best_acc:\n    best_acc = val_acc",
        "best_loss = min(best_loss, val_loss)",
        "if loss > worst_loss:\n    worst_loss = loss",
        "max_loss = max(max_loss, loss)",
        "if neg_loss > best:\n    best = neg_loss",
        "if score > best_score:\n    best_score = score",
        "if val_loss > best_loss:\n    waited += 1\nelse:\n    best_loss = val_loss",
        "if val_loss > best_loss * 1.5:\n    print('diverged')",
        "class Stop:\n    def step(self, loss):\n        if loss > self.best:\n            self.best = loss\n"
        "stop.step(-loss)",
        "class Stop:\n    def step(self, loss):\n        if loss > self.best:\n            self.best = loss\n"
        "stop.step(val_acc)",
    ],
)
def test_is_silent(source):
    assert not backward(source)


KEEPS = """
criterion = torch.nn.CrossEntropyLoss()
for i in range(9):
    a = {value}
    if a > b:
        b = a
        torch.save(net.state_dict(), "net.pt")
"""


def test_a_loss_by_what_computes_it():
    (one,) = found("inverted_best", KEEPS.format(value="criterion(net(x), y).item()"))
    assert (one.names, one.by_name) == (("a", "b", "rise"), False)


def test_a_loss_by_its_name_alone_is_marked():
    (one,) = found("inverted_best", "if val_loss > best:\n    best = val_loss")
    assert one.by_name


@pytest.mark.parametrize("value", ["-criterion(net(x), y).item()", "(net(x).argmax(1) == y).sum().item()"])
def test_another_value_without_a_name(value):
    assert found("inverted_best", KEEPS.format(value=value)) == []


def test_the_hardest_example_that_is_kept_and_not_saved():
    source = KEEPS.format(value="criterion(net(x), y).item()").replace("torch.save", "print")
    assert found("inverted_best", source.replace("net.state_dict()", "a")) == []
