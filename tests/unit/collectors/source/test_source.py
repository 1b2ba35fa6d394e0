"""What is read in the source of scripts."""

import pytest

from diagnostics.collectors.source.read import patterns_of
from tests.support.sources import found, names_and_lines


def kept(source):
    return names_and_lines("kept_models", source)


class TestKeptModels:
    def test_a_second_name_for_the_model_that_trains_on(self):
        source = """
            for epoch in range(9):
                train_epoch(model, loader)
                score = evaluate(model)
                if score > best:
                    best, best_model = score, model
            evaluate(best_model)
        """
        assert kept(source) == [("best_model", "model", 6)]

    def test_an_attribute_that_another_method_reads(self):
        source = """
            class Trainer:
                def fit(self):
                    for epoch in range(9):
                        self.train_epoch()
                        if self.score() > self.best:
                            self.best_model = self.model
                def test(self):
                    return self.score(self.best_model)
        """
        assert kept(source) == [("self.best_model", "self.model", 7)]

    def test_weights_in_a_dict_without_copies(self):
        source = """
            for epoch in range(9):
                train(model)
                if loss < best:
                    best_state = {name: p.data for name, p in model.named_parameters()}
            restore(model, best_state)
        """
        assert kept(source) == [("best_state", "model", 5)]

    def test_an_early_stopping_that_keeps_what_it_is_called_with(self):
        source = """
            class EarlyStopping:
                def __call__(self, loss, model):
                    if loss < self.best:
                        self.best_model = model
            stopper = EarlyStopping()
            for epoch in range(9):
                train(model)
                stopper(evaluate(model), model)
            test(stopper.best_model)
        """
        assert kept(source) == [("self.best_model", "model", 5)]

    @pytest.mark.parametrize(
        "change",
        [
            ("best_model = model", "best_model = copy.deepcopy(model)"),
            ("best_model = model", "best_model = model; break"),
            ("train(model)", "model = Net(); train(model)"),
            ("train(model)", "show(model)"),
            ("best_model = model", "best_model = model_path"),
            ("test(best_model)", "test(model)"),
            ("test(best_model)", "model.load_state_dict(torch.load('best.pt')); test(best_model)"),
        ],
    )
    def test_neighbours_that_are_right(self, change):
        source = """
            for epoch in range(9):
                train(model)
                if score > best:
                    best_model = model
            test(best_model)
        """
        assert kept(source)
        old, new = change
        assert old in source
        if "; " in new:
            indent = next(line for line in source.splitlines() if old in line).partition(old)[0]
            new = new.replace("; ", f"\n{indent}")
        assert kept(source.replace(old, new)) == []

    @pytest.mark.parametrize(
        ("kept_as", "by_name"), [("b, c = a, net", False), ("best_net = net", True), ("b, c = a, rows", None)]
    )
    def test_marks_what_only_a_name_calls_the_best(self, kept_as, by_name):
        source = f"""
            for i in range(9):
                step(net.parameters())
                if a > b:
                    {kept_as}
            test(c, best_net)
        """
        assert [one.by_name for one in found("kept_models", source)] == ([] if by_name is None else [by_name])

    def test_copies_of_weights_are_right(self):
        for copied in ("p.clone()", "p.detach().cpu().clone()", "copy.deepcopy(p)"):
            source = f"""
                for epoch in range(9):
                    train(model)
                    if loss < best:
                        best_state = {{name: {copied} for name, p in model.named_parameters()}}
                restore(model, best_state)
            """
            assert kept(source) == []


def test_a_file_that_cannot_be_read_has_no_facts(tmp_path):
    broken = tmp_path / "train.py"
    broken.write_text("def f(:\n")
    assert not list(patterns_of([str(broken), str(tmp_path / "none.py")]))


class TestArgmaxesOfAnswers:
    @pytest.mark.parametrize(
        "source",
        [
            "model = Model()\noutputs = model(x)\n_, predicted = torch.max(outputs, 1)",
            "outputs = model(x)\n_, predicted = torch.max(outputs.data, dim=1)",
            "predicted = net(x).argmax(dim=1)",
            "predicted = self.net(x).argmax(-1)",
            "scores = model.predict(x_test)\nclasses = np.argmax(scores, axis=1)",
            "classes = np.argmax(model.predict(x_test), axis=-1)",
            "scores = model(x).detach().cpu().numpy()\nclasses = scores.argmax(axis=1)",
            "classes = torch.softmax(model(x), dim=1).argmax(1)",
            "classes = model(**batch).logits.argmax(-1)",
            "def compute_metrics(pair):\n    logits, labels = pair\n    return logits.argmax(-1) == labels",
            "def compute_metrics(pair):\n    return pair.predictions.argmax(-1) == pair.label_ids",
        ],
    )
    def test_of_the_answers(self, source):
        assert len(found("constant_argmax", source)) == 1

    @pytest.mark.parametrize(
        "source",
        [
            "labels = np.argmax(one_hot, axis=1)",  # of targets
            "outputs = model(x)\nbest = outputs.argmax(0)",  # which example scores highest
            "outputs = model(x)\nbest = outputs.argmax()",
            "outputs = model(x)\nhighest = np.max(outputs, axis=1)",  # the score itself
            "outputs = model(x).reshape(4, 8)\nbest = outputs.argmax(1)",  # another shape
            "scores = critic_net(x)\nactions = actor_net(x).argmax(1)",  # two models
            "action = rewards.argmax(1)\nvalue = model(x)",
            "outputs = model(x)\nbest = outputs.argmax(axis)",
            "highest, _ = net(states).max(1)",  # the value of a state
            "highest = net(states).max(1)[0]",
        ],
    )
    def test_of_nothing_else(self, source):
        assert found("constant_argmax", source) == []


def seeds(source):
    return [(*one.names, one.where.function) for one in found("constant_seeds", source)]


class TestConstantSeeds:
    def test_a_seed_for_each_row(self):
        source = """
            class Denoising(Dataset):
                def __getitem__(self, index):
                    torch.manual_seed(42)
                    return self.clean[index] + torch.randn(64)
        """
        assert seeds(source) == [("torch", "42", "torch.randn", "Denoising.__getitem__")]

    def test_an_attribute_that_nobody_changes_in_a_method_that_is_called(self):
        source = """
            class Crops(Dataset):
                def __init__(self, seed=0):
                    self.seed = seed
                def __getitem__(self, index):
                    return self.crop(self.images[index])
                def crop(self, image):
                    np.random.seed(self.seed)
                    top = np.random.randint(0, 8)
                    return image[top:]
        """
        assert seeds(source) == [("numpy.random", "self.seed", "np.random.randint", "Crops.crop")]

    def test_a_constant_of_the_module(self):
        source = """
            SEED = 7
            class Jitter(Dataset):
                def __getitem__(self, index):
                    random.seed(SEED)
                    return self.rows[index] * random.uniform(0.9, 1.1)
        """
        assert seeds(source) == [("random", "SEED", "random.uniform", "Jitter.__getitem__")]

    @pytest.mark.parametrize(
        "body",
        [
            "torch.manual_seed(index)\n    return self.x[index] + torch.randn(3)",
            "torch.manual_seed(self.epoch)\n    return self.x[index] + torch.randn(3)",
            "if self.fixed:\n        torch.manual_seed(0)\n    return self.x[index] + torch.randn(3)",
            "torch.manual_seed(0)\n    return self.x[index] @ torch.randn(3, 3)",
            "np.random.seed(0)\n    return self.x[index][np.random.permutation(9)]",
            "np.random.seed(0)\n    return self.x[index] + torch.randn(3)",
            "noise = torch.randn(3)\n    torch.manual_seed(0)\n    return self.x[index] + noise",
            "torch.manual_seed(0)\n    torch.manual_seed(index)\n    return self.x[index] + torch.randn(3)",
            "seed = np.random.randint(99)\n    torch.manual_seed(seed)\n    return self.x[index] + torch.rand(3)",
        ],
        ids=["row", "epoch", "condition", "projection", "order", "other", "before", "again", "drawn"],
    )
    def test_silent_on_other_seeds(self, body):
        source = "class Rows(Dataset):\n  def __getitem__(self, index):\n    " + body
        source += "\n\n  def set_epoch(self, epoch):\n    self.epoch = epoch\n"
        assert seeds(source) == []

    def test_silent_on_rows_for_evaluation(self):
        body = "  def __getitem__(self, i):\n    torch.manual_seed(0)\n    return self.x[i] + torch.randn(3)\n"
        assert seeds("class ValSet(Dataset):\n" + body) == []
        assert seeds("class Values(Dataset):\n" + body) != []


SPLIT = """
train, val = random_split(data, [80, 20])
train.dataset.transform = augment
{between}val.dataset.transform = {second}
"""


def shared(between="", second="plain"):
    return names_and_lines("shared_settings", SPLIT.format(between=between, second=second))


def test_finds_a_setting_that_another_part_of_the_split_replaces():
    assert shared() == [("train", "val", "transform", "augment", "plain", 4)]
    subsets = "a = Subset(data, x)\nb = Subset(data, y)\na.dataset.flip = True\nb.dataset.flip = False"
    assert names_and_lines("shared_settings", subsets) == [("a", "b", "flip", "True", "False", 4)]


@pytest.mark.parametrize(
    "given",
    [
        {"second": "augment"},
        {"between": "val.dataset = copy.copy(data)\n"},
        {"between": "for epoch in range(3): "},
        {"between": "val = random_split(other, [9, 1])[1]\nval, rest = random_split(other, [9, 1])\n"},
    ],
    ids=["the same value", "a copy of its own", "switched in a loop", "of another data set"],
)
def test_silent_on_settings_that_are_not_replaced(given):
    assert shared(**given) == []
