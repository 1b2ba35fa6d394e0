"""Loops that nobody changed, and what is said of their first step, before a weight changes."""

import gc
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from diagnostics.collectors.isolation.sandbox import can_sandbox
from diagnostics.run.observer import ScriptObserver

FEATURES = torch.randn(256, 4, generator=torch.Generator().manual_seed(0))
CLASSES = FEATURES.argmax(1)
RARE = (torch.arange(256) % 64 > 59).long()


@pytest.fixture
def run():
    torch.manual_seed(0)
    made = ScriptObserver()
    yield made
    made.close()
    assert made.faults == []


def classifier(*end, outputs=4):
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, outputs), *end)


def loader(*tensors, **options):
    return DataLoader(TensorDataset(*tensors), batch_size=32, **options)


def train(model, batches, compute, optimizer=None, steps=3):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.01)
    for _, (inputs, target) in zip(range(steps), batches, strict=False):
        optimizer.zero_grad()
        compute(model(inputs), target).backward()
        optimizer.step()


def shown(run):
    """Return the findings of the only examination, by rule, and what each stage says."""
    (report,) = run.examined
    assert report.faults == ()
    return {finding.rule: finding for finding in report.findings}, {stage.name: stage for stage in report.stages}


class TestReport:
    def test_of_a_loop_in_which_all_is_well(self, run):
        said = []
        run._trainings.on_examined = said.append
        train(classifier(), loader(FEATURES, CLASSES, shuffle=True), F.cross_entropy)
        findings, stages = shown(run)
        assert said == run.examined
        assert run.examined[0].title == "examined the first step of Sequential"
        assert findings == {}
        details = {name: (stage.status, stage.detail) for name, stage in stages.items()}
        loss = details.pop("forward and loss")[1]
        assert loss.startswith("outputs (32, 4); loss 1.")
        assert loss.endswith(", cross entropy")
        assert details == {
            "dataset": ("passed", "256 rows, 256 read; a model of 148 parameters"),
            "batch": ("passed", "32 examples: input (32, 4), target (32,)"),
            "backward": ("not judged", "the gradients are watched at every step"),
            "optimizer step": ("passed", "SGD with learning rate 0.01"),
            "one-batch overfit": ("not judged", "no copy is trained while the script trains"),
            "evaluation metric": ("not judged", "no metric was given"),
        }

    def test_is_made_before_the_weights_change(self, run):
        model, seen = classifier(), []
        before = model[0].weight.detach().clone()
        run._trainings.on_examined = lambda report: seen.append(before.equal(model[0].weight))
        train(model, loader(FEATURES, CLASSES), F.cross_entropy)
        assert seen == [True]

    def test_is_made_once_a_loop(self, run):
        model = classifier()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            train(model, loader(FEATURES, CLASSES), F.cross_entropy, optimizer)
        assert len(run.examined) == 1

    def test_modules_that_are_called_one_by_one_have_one_together(self, run):
        class Encoder(nn.Linear):
            pass

        encoder, head = Encoder(4, 16), nn.Linear(16, 4)
        optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.01)
        train(lambda inputs: head(encoder(inputs).relu()), loader(FEATURES, CLASSES), F.cross_entropy, optimizer)
        _, stages = shown(run)
        assert run.examined[0].title == "examined the first step of Encoder and Linear"
        assert stages["batch"].detail == "32 examples: input (32, 4), target (32,)"
        assert stages["forward and loss"].detail.startswith("outputs (32, 4); loss 1.")


class TestFound:
    @pytest.mark.filterwarnings("ignore:Using a target size")
    @pytest.mark.parametrize(
        "compute",
        [nn.MSELoss(), F.smooth_l1_loss, lambda prediction, price: ((prediction - price) ** 2).mean()],
        ids=["module", "function", "by hand"],
    )
    def test_prediction_and_target_that_are_stretched(self, run, compute):
        train(nn.Linear(4, 1), loader(FEATURES, FEATURES[:, 0].contiguous()), compute)
        findings, _ = shown(run)
        assert findings["broadcast-loss"].message == (
            "The prediction has shape (32, 1) and the target has shape (32,). The loss broadcasts them "
            "to (32, 32): every prediction is compared with 32 targets instead of only its own. Predicting the "
            "mean for every example minimises this loss, so that is what the model will learn."
        )

    def test_labels_out_of_range_before_the_loss_fails_of_them(self, run):
        with pytest.raises(IndexError, match="is out of bounds"):
            train(classifier(outputs=3), loader(FEATURES, CLASSES, shuffle=True), F.cross_entropy)
        findings, _ = shown(run)
        assert findings["labels-out-of-range"].evidence["highest_label"] == 3

    def test_a_softmax_before_cross_entropy_in_an_accumulation(self, run):
        model = classifier(nn.Softmax(dim=-1))
        train(model, loader(FEATURES, CLASSES), lambda output, labels: F.cross_entropy(output, labels) / 4)
        findings, stages = shown(run)
        assert set(findings) == {"probabilities-as-logits"}
        assert stages["forward and loss"].detail.startswith("outputs (32, 4); loss 1.3")

    def test_raw_scores_in_nll_loss(self, run):
        train(classifier(), loader(FEATURES, CLASSES), F.nll_loss)
        assert set(shown(run)[0]) == {"logits-as-probabilities"}

    def test_inputs_that_are_not_scaled(self, run):
        train(classifier(), loader(400 * FEATURES, CLASSES), F.cross_entropy)
        assert "unscaled-inputs" in shown(run)[0]

    def test_an_optimizer_that_misses_parameters(self, run):
        model = classifier()
        optimizer = torch.optim.SGD(model[2].parameters(), lr=0.01)
        train(model, loader(FEATURES, CLASSES), F.cross_entropy, optimizer)
        assert set(shown(run)[0]) == {"optimizer-misses-parameters"}

    def test_a_loss_that_is_nan(self, run):
        broken = FEATURES.clone()
        broken[3, 2] = float("nan")
        train(classifier(), loader(broken, CLASSES), F.cross_entropy)
        assert shown(run)[0]["non-finite-inputs"].evidence["rows"] == {"0": [3]}

    def test_rows_that_come_sorted_by_label(self, run):
        order = CLASSES.argsort()
        train(classifier(), loader(FEATURES[order], CLASSES[order]), F.cross_entropy)
        assert set(shown(run)[0]) == {"sorted-by-label"}

    def test_a_rare_class_that_the_first_batch_has_nothing_of(self, run):
        train(classifier(outputs=2), loader(FEATURES, RARE), F.cross_entropy)
        assert shown(run)[0]["class-imbalance"].message == (
            "Of the 256 rows read, 240 have label 0. A model that always predicts this label has an "
            "accuracy of 0.94 without using its input."
        )

    def test_rows_that_are_moved_and_reshaped_on_the_way_are_known_again(self, run):
        images = torch.randn(256, 2, 2, generator=torch.Generator().manual_seed(1)).double()
        order = CLASSES.argsort()
        batches = loader(images[order], CLASSES[order])
        train(classifier(), ((x.float().view(-1, 4), y.clone()) for x, y in batches), F.cross_entropy)
        assert set(shown(run)[0]) == {"sorted-by-label"}


class TestSilent:
    def test_of_a_rare_class_that_is_given_more_weight(self, run):
        weight = torch.tensor([0.5, 8.0])
        train(classifier(outputs=2), loader(FEATURES, RARE), nn.CrossEntropyLoss(weight))
        assert shown(run)[0] == {}

    def test_where_the_true_pair_stands_first_beside_labels_of_classes(self, run):
        def compute(scores, _):
            return F.cross_entropy(scores, torch.zeros(32, dtype=torch.int64))

        train(classifier(outputs=8), loader(FEATURES, RARE.flip(0)), compute)
        findings, stages = shown(run)
        assert findings == {}
        assert "cross entropy" not in stages["forward and loss"].detail

    def test_where_the_loss_is_made_of_several(self, run):
        def both(output, target):
            return F.cross_entropy(output, target) + F.mse_loss(output.softmax(1), torch.full_like(output, 0.25))

        train(classifier(), loader(FEATURES, CLASSES), both)
        findings, stages = shown(run)
        assert findings == {}
        assert stages["forward and loss"].detail.startswith("loss ")

    @pytest.mark.filterwarnings("ignore:Using a target size")
    def test_of_a_target_that_is_one_number_for_all(self, run):
        train(nn.Linear(4, 1), loader(FEATURES, CLASSES), lambda output, _: F.mse_loss(output, torch.tensor(1.0)))
        assert "broadcast-loss" not in shown(run)[0]

    def test_of_a_loss_that_is_only_printed(self, run):
        printed = []

        def compute(output, target):
            printed.append(F.mse_loss(output[:, :1], target.float()))
            return F.cross_entropy(output, target)

        with pytest.warns(UserWarning, match="Using a target size"):
            train(classifier(), loader(FEATURES, CLASSES), compute)
        findings, stages = shown(run)
        assert findings == {}
        assert stages["forward and loss"].detail.endswith("cross entropy")

    def test_of_a_sparse_input(self, run):
        layer, links = nn.Linear(4, 4), torch.eye(256).to_sparse()

        class Graph(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = layer

            def forward(self, features, links):
                return links @ self.layer(features)

        model = Graph()
        rows = loader(torch.eye(256), CLASSES, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in rows:
            optimizer.zero_grad()
            F.cross_entropy(model(FEATURES, links)[:100], CLASSES[:100]).backward()
            optimizer.step()
        findings, stages = shown(run)
        assert findings == {}
        assert stages["batch"].detail == "256 examples: input (256, 4), target (100,)"

    def test_of_what_a_judge_says_of_made_points(self, run):
        maker, judge = nn.Linear(2, 4), nn.Linear(4, 1)
        making, judging = (torch.optim.Adam(part.parameters(), lr=1e-3) for part in (maker, judge))
        one, zero = torch.ones(32, 1), torch.zeros(32, 1)
        for (real,) in loader(FEATURES):
            judging.zero_grad()
            F.binary_cross_entropy_with_logits(judge(real), one).backward()
            F.binary_cross_entropy_with_logits(judge(maker(torch.randn(32, 2)).detach()), zero).backward()
            judging.step()
            making.zero_grad()
            F.binary_cross_entropy_with_logits(judge(maker(torch.randn(32, 2))), one).backward()
            making.step()
        said = {report.title: report for report in run.examined}
        assert len(run.examined) == 2
        assert all(report.findings == () for report in run.examined), said
        assert run.examined[0].stages[2].detail.endswith("binary cross entropy")

    def test_of_an_image_that_is_optimized_through_a_model(self, run):
        model, image = classifier(), FEATURES[:1].clone().requires_grad_()
        optimizer = torch.optim.SGD([image], lr=0.1)
        for _ in range(3):
            F.cross_entropy(model(image), CLASSES[:1]).backward()
            optimizer.step()
        assert run.examined == []

    def test_of_parameters_that_are_updated_by_hand(self, run):
        model = classifier()
        for inputs, labels in loader(FEATURES, CLASSES):
            F.cross_entropy(model(inputs), labels).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.01 * parameter.grad
                    parameter.grad = None
        reports = [*run.examined, *run.watched()]
        assert len(reports) == 2
        assert [finding for report in reports for finding in report.findings] == []


class Counting(Dataset):
    """Rows that take note of being read."""

    def __init__(self):
        self.read = []

    def __len__(self):
        return 64

    def __getitem__(self, index):
        self.read.append(index)
        return FEATURES[index], CLASSES[index]


class TestScript:
    def test_gets_the_same_bits(self):
        def trained(observed):
            torch.manual_seed(0)
            run = ScriptObserver() if observed else None
            model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), nn.Linear(16, 4))
            optimizer = torch.optim.Adam(model.parameters())
            for _ in range(2):
                batches = loader(FEATURES, CLASSES, shuffle=True)
                train(model, batches, nn.CrossEntropyLoss(), optimizer, steps=8)
            if run is not None:
                run.close()
                assert len(run.examined) == 1
            return {name: value.clone() for name, value in model.state_dict().items()}, torch.rand(4)

        (alone, drawn), (observed, drawn_after) = trained(observed=False), trained(observed=True)
        assert all(value.equal(observed[name]) for name, value in alone.items())
        assert drawn.equal(drawn_after)

    def test_has_its_own_dataset_read_no_more_often(self, run):
        data = Counting()
        train(classifier(), DataLoader(data, batch_size=16), F.cross_entropy, steps=4)
        _, stages = shown(run)
        assert data.read == list(range(64))
        unread = "reading rows now could change what the training reads"
        assert stages["dataset"].detail.startswith("64 rows, 64 read" if can_sandbox() else unread)

    def test_has_nothing_of_its_first_step_kept(self, run):
        model, kept = classifier(), []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

        def step(batch, labels):
            output = model(batch)
            loss = F.cross_entropy(output, labels)
            loss.backward()
            optimizer.step()
            return [weakref.ref(value) for value in (output, loss, labels)]

        for batch, labels in loader(FEATURES, CLASSES):
            kept.append(step(batch, labels.clone()))
        gc.collect()
        assert [[reference() for reference in references] for references in kept] == [[None] * 3] * 8

    def test_may_compute_gradients_of_single_examples(self, run):
        model = classifier()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

        def loss_of(weights, inputs, label):
            return F.cross_entropy(torch.func.functional_call(model, weights, (inputs[None],)), label[None])

        each = torch.func.vmap(torch.func.grad(loss_of), (None, 0, 0))(
            dict(model.named_parameters()), FEATURES[:8], CLASSES[:8]
        )
        for name, parameter in model.named_parameters():
            parameter.grad = each[name].mean(0)
        optimizer.step()
        assert run.examined == []

    def test_has_its_losses_given_back_after_the_step(self, run):
        plain = F.cross_entropy.__code__
        train(classifier(), loader(FEATURES, CLASSES), F.cross_entropy)
        assert F.cross_entropy.__code__ is plain


class TestEvaluation:
    def learn(self, training, evaluation):
        model = classifier()
        batches = loader(*training, shuffle=True)
        train(model, batches, F.cross_entropy)
        model.eval()
        with torch.no_grad():
            for inputs, _ in loader(*evaluation):
                model(inputs)
        return model, batches  # for as long as the test looks

    def test_rows_that_were_learned_from_are_found_in_it(self, run):
        kept = self.learn((FEATURES[:200], CLASSES[:200]), (FEATURES[150:], CLASSES[150:]))
        finding = shown(run)[0]["leaked-evaluation-rows"]
        assert finding.evidence["shared"] == 50
        assert "leaked-evaluation-rows" not in run.examined[0].not_applicable, kept

    def test_other_rows_are_silent(self, run):
        kept = self.learn((FEATURES[:200], CLASSES[:200]), (FEATURES[200:], CLASSES[200:]))
        assert shown(run)[0] == {}, kept

    def test_a_loader_that_is_fresh_for_each_epoch_is_remembered(self, run):
        data, model = TensorDataset(FEATURES, CLASSES), classifier()
        kept = Subset(data, range(200))
        train(model, DataLoader(kept, 16, shuffle=True), F.cross_entropy)
        gc.collect()
        model.eval()
        with torch.no_grad():
            for inputs, _ in DataLoader(Subset(data, range(150, 250)), 16):
                model(inputs)
        assert shown(run)[0]["leaked-evaluation-rows"].evidence["shared"] == 50, kept

    def test_training_rows_that_the_script_has_dropped_are_not_kept_for_it(self, run):
        data, model = TensorDataset(FEATURES, CLASSES), classifier()
        train(model, DataLoader(Subset(data, range(200)), 16, shuffle=True), F.cross_entropy)
        gc.collect()
        model.eval()
        with torch.no_grad():
            for inputs, _ in DataLoader(Subset(data, range(150, 250)), 16):
                model(inputs)
        assert shown(run)[0] == {}

    def test_training_rows_alone_show_how_well_they_were_learned(self, run):
        kept = self.learn((FEATURES, CLASSES), (FEATURES[:100].clone(), CLASSES[:100].clone()))
        assert shown(run)[0] == {}, kept

    def test_draws_nothing(self, run):
        kept = self.learn((FEATURES[:200], CLASSES[:200]), (FEATURES[150:], CLASSES[150:]))
        observed = torch.rand(3)
        run.close()
        torch.manual_seed(0)
        assert self.learn((FEATURES[:200], CLASSES[:200]), (FEATURES[150:], CLASSES[150:])) is not kept
        assert torch.rand(3).equal(observed)
