"""`diagnostics.TrainerCallback`, on a real Trainer with a tiny model."""

import re

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file
from torch import nn
from transformers import DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments

import diagnostics
from diagnostics.run.observer import ScriptObserver
from tests.support.marks import exhaustive
from tests.transformers.counting import CLASSES, FEATURES, Network

ROWS = 96


class SquaredTrainer(Trainer):
    """Computes a loss of its own, which the model knows nothing of."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = nn.functional.one_hot(inputs.pop("labels"), CLASSES).float()
        outputs = model(**inputs)
        loss = (outputs["logits"] - labels).square().mean()
        return (loss, outputs) if return_outputs else loss


def points(rows=ROWS, broken_row=None):
    features = torch.randn(rows, FEATURES, generator=torch.Generator().manual_seed(0))
    labels = features[:, :CLASSES].argmax(1)
    if broken_row is not None:
        features[broken_row, 2] = float("nan")
    return [{"features": row, "labels": label} for row, label in zip(features, labels, strict=True)]


def sentences():
    ids = torch.randint(2, 50, (ROWS, 8), generator=torch.Generator().manual_seed(0))
    return [{"input_ids": row, "labels": row[0] % 2} for row in ids]


def distilbert():
    config = DistilBertConfig(vocab_size=50, dim=16, hidden_dim=32, n_layers=1, n_heads=2)
    return DistilBertForSequenceClassification(config)


def make(folder, callback=None, *, kind=Trainer, model=Network, data=points, **settings):
    transformers.set_seed(3)
    chosen = {
        "max_steps": 30, "per_device_train_batch_size": 8, "learning_rate": 1e-2, "logging_steps": 1,
        "save_strategy": "no", "report_to": "none", "disable_tqdm": True, "use_cpu": True,
    } | settings  # fmt: skip
    arguments = TrainingArguments(output_dir=str(folder), **chosen)
    trainer = kind(model(), arguments, train_dataset=data(), eval_dataset=data())
    if callback is not None:
        trainer.add_callback(callback)
    return trainer


def trained(*arguments, resume=None, **options):
    trainer = make(*arguments, **options)
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def assert_same_bits(one, other):
    state, again = one.model.state_dict(), other.model.state_dict()
    assert state.keys() == again.keys()
    for name in state:
        assert state[name].numpy().tobytes() == again[name].numpy().tobytes(), f"{name} changed"
    logs = [[entry.get("loss") for entry in trainer.state.log_history] for trainer in (one, other)]
    assert logs[0] == logs[1]


def test_a_fixed_batch_and_the_layers_are_shown_over_time(tmp_path):
    inputs = {name: torch.stack([row[name] for row in points()[:12]]) for name in ("features", "labels")}
    callback = diagnostics.TrainerCallback(
        quiet=True,
        fixed_batch=diagnostics.FixedBatch(inputs, decode_target="abcdefgh".__getitem__),
        histograms=True,
    )
    watched = trained(tmp_path, callback)
    assert_same_bits(trained(tmp_path), watched)
    report = callback.report()
    assert report.faults == ()
    assert [look.step for look in report.fixed_batch.looks] == [0, 1, 2, 5, 10, 20, 30]
    with torch.no_grad():
        expected = watched.model.eval()(**inputs)
    assert report.fixed_batch.looks[-1].loss == pytest.approx(expected["loss"].item(), rel=1e-5)
    best = expected["logits"][:8].argmax(1)
    assert [text[0] for text in report.fixed_batch.looks[-1].predictions] == ["abcdefgh"[n] for n in best]
    assert list(report.histograms[0].gradients) == ["body.0", "head"]


class TestChangesNothing:
    @pytest.mark.parametrize(
        "settings",
        [
            {},
            {"gradient_accumulation_steps": 4},
            *exhaustive({"bf16": True}),
            {"eval_strategy": "steps", "eval_steps": 7},
            {"kind": SquaredTrainer},
            *exhaustive(
                {"model": distilbert, "data": sentences, "label_smoothing_factor": 0.1},
                {"model": distilbert, "data": sentences, "gradient_checkpointing": True},
                {"torch_compile": True, "torch_compile_backend": "eager"},
            ),
        ],
        ids=["plain", "accumulation", "bf16", "evaluation", "loss", "smoothing", "checkpointing", "compiled"],
    )
    def test_training_gives_the_same_bits_as_without(self, tmp_path, settings):
        callback = diagnostics.TrainerCallback(every=7, quiet=True)
        watched = trained(tmp_path, callback, **settings)
        assert_same_bits(trained(tmp_path, **settings), watched)
        report = callback.report()
        assert report.faults == ()
        assert len(report.history.losses.steps) == report.history.steps.total_steps
        assert len(report.history.gradients.steps) == report.history.steps.total_steps
        assert {stage.status for stage in report.stages} == {"passed"}

    def test_even_if_it_goes_on_from_a_checkpoint(self, tmp_path):
        trained(tmp_path, save_strategy="steps", save_steps=20)
        checkpoint = str(tmp_path / "checkpoint-20")
        callback = diagnostics.TrainerCallback(quiet=True)
        watched = trained(tmp_path, callback, resume=checkpoint)
        assert_same_bits(trained(tmp_path, resume=checkpoint), watched)
        assert callback.report().title == (
            "watched 10 steps of Network with a Trainer, from its step 20 on, which counts as 0"
        )

    def test_the_trainer_is_left_as_it_was(self, tmp_path):
        trainer = trained(tmp_path, diagnostics.TrainerCallback(quiet=True))
        assert "training_step" not in vars(trainer)
        hooks = [module._forward_hooks or module._forward_pre_hooks for module in trainer.model.modules()]
        assert not any(hooks)

    def test_a_fault_of_its_own_is_a_line_in_the_report(self, tmp_path, monkeypatch):
        def broken(*_):
            raise ZeroDivisionError("on purpose")

        callback = diagnostics.TrainerCallback(quiet=True)
        for part in ("_step", "_evaluated", "_close"):
            monkeypatch.setattr(callback, part, broken)
        watched = trained(tmp_path, callback, eval_strategy="steps", eval_steps=7)
        assert_same_bits(trained(tmp_path, eval_strategy="steps", eval_steps=7), watched)
        assert callback.report().faults == (
            "watching the Trainer failed (beginning): ZeroDivisionError: on purpose",
            "watching the Trainer failed (loss): ZeroDivisionError: on purpose",
            "watching the Trainer failed (evaluation): ZeroDivisionError: on purpose",
            "watching the Trainer failed (end): ZeroDivisionError: on purpose",
        )


class TestLoss:
    @pytest.mark.parametrize(
        "settings",
        [
            {},
            {"kind": SquaredTrainer},
            {"gradient_accumulation_steps": 4},
            {"gradient_accumulation_steps": 4, "kind": SquaredTrainer},
            {"gradient_accumulation_steps": 4, "model": distilbert, "data": sentences},
            {"model": distilbert, "data": sentences, "label_smoothing_factor": 0.1},
        ],
        ids=["plain", "own", "accumulation", "own and accumulation", "distilbert", "smoothing"],
    )
    def test_is_that_which_the_trainer_logs_when_it_logs_each_step(self, tmp_path, settings):
        callback = diagnostics.TrainerCallback(quiet=True)
        trainer = trained(tmp_path, callback, **settings)
        logged = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        np.testing.assert_allclose(callback.report().history.losses.values, logged, rtol=1e-6)

    def test_of_an_evaluation_is_kept_with_its_step(self, tmp_path):
        callback = diagnostics.TrainerCallback(quiet=True)
        trainer = trained(tmp_path, callback, eval_strategy="steps", eval_steps=10)
        trainer.evaluate()  # after training: none of the run
        history = callback.report().history
        assert history.evaluations.steps.tolist() == [9, 19, 29]
        logged = [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry]
        assert history.evaluations.losses.tolist() == logged[:3]
        assert (history.no_grad.passes, history.no_grad.passes_in_training_mode) == (36, 0)

    def test_of_several_evaluation_sets_is_that_of_the_first(self, tmp_path):
        callback = diagnostics.TrainerCallback(quiet=True)
        trainer = make(tmp_path, callback, eval_strategy="steps", eval_steps=10)
        trainer.eval_dataset = {"near": points(), "far": points(32)}
        trainer.train()
        logged = [entry["eval_near_loss"] for entry in trainer.state.log_history if "eval_near_loss" in entry]
        assert callback.report().history.evaluations.losses.tolist() == logged

    def test_without_the_trainer_in_sight_is_not_known(self, tmp_path):
        callback = diagnostics.TrainerCallback(quiet=True)
        trainer = make(tmp_path)
        model, optimizer = trainer.model, torch.optim.SGD(trainer.model.parameters(), lr=0.1)
        callback.on_train_begin(trainer.args, trainer.state, trainer.control, model=model, optimizer=optimizer)
        stages = {stage.name: stage.detail for stage in callback.report().stages}
        assert stages["loss"] == "the Trainer that calls this callback was not found"


class TestReport:
    def test_steps_are_those_of_the_optimizer(self, tmp_path):
        callback = diagnostics.TrainerCallback(quiet=True)
        trained(tmp_path, callback, gradient_accumulation_steps=4, learning_rate=1e-3, max_steps=24)
        history = callback.report().history
        assert history.steps.total_steps == 24
        assert set(history.steps.passes.tolist()) == {4}
        assert history.steps.learning_rates[0, 0] == 1e-3
        assert history.steps.learning_rates[-1, 0] == pytest.approx(1e-3 / 24)
        assert set(history.steps.training_mode.tolist()) == {1}

    @pytest.mark.parametrize("settings", [{}, {"bf16": True}], ids=["float32", "bf16"])
    def test_names_the_step_and_the_row_that_held_a_nan(self, tmp_path, settings, capsys):
        callback = diagnostics.TrainerCallback()
        trainer = trained(tmp_path, callback, data=lambda: points(broken_row=17), max_steps=12, **settings)
        losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        report = callback.report()
        assert [finding.rule for finding in report.findings] == ["non-finite-inputs"]
        step = report.findings[0].step
        assert not np.isfinite(report.history.losses.values[step])
        assert np.isfinite(report.history.losses.values[:step]).all()
        assert np.isfinite(losses).all()  # the Trainer's own filter leaves it out of what it logs
        assert report.findings[0].message.startswith(
            f"The batch at step {step} has NaN or infinity in features. Affected: 1 of the 8 examples"
        )
        assert "error: non-finite-inputs" in capsys.readouterr().err

    def test_can_be_had_at_any_time(self, tmp_path):
        callback = diagnostics.TrainerCallback()
        assert str(callback.report()).startswith("watched nothing: training has not begun")
        trained(tmp_path, callback)
        assert callback.report().title == "watched 30 steps of Network with a Trainer"

    def test_is_printed_only_if_something_is_wrong(self, tmp_path, capsys):
        trained(tmp_path, diagnostics.TrainerCallback())
        assert "watched" not in capsys.readouterr().err

    def test_is_never_printed_if_it_is_to_be_quiet(self, tmp_path, capsys):
        callback = diagnostics.TrainerCallback(quiet=True)
        trained(tmp_path, callback, data=lambda: points(broken_row=17), max_steps=12)
        assert not callback.report().ok
        assert "non-finite-inputs" not in capsys.readouterr().err

    def test_of_a_second_run_is_about_that_one(self, tmp_path):
        callback = diagnostics.TrainerCallback(quiet=True)
        trainer = make(tmp_path, callback, max_steps=12)
        trainer.train()
        trainer.args.max_steps = 5
        trainer.train()
        assert re.match("watched 5 steps", callback.report().title)

    def test_after_stopping_says_how_far_it_looked_while_training_goes_on(self, tmp_path):
        callback = diagnostics.TrainerCallback(stop_after=10, quiet=True)
        trainer = trained(tmp_path, callback)
        assert trainer.state.global_step == 30
        assert callback.report().title == "watched 10 steps of Network with a Trainer"

    def test_says_why_nothing_was_watched(self, tmp_path):
        callback = diagnostics.TrainerCallback(quiet=True)
        trainer = make(tmp_path)
        trainer.args._n_gpu = 2
        callback.on_train_begin(trainer.args, trainer.state, trainer.control, model=trainer.model)
        assert callback.report().title == (
            "watched nothing: the Trainer spreads each batch over 2 GPUs in one process, which is not covered; "
            "start the script with torchrun"
        )
        trainer.args._n_gpu = 1
        callback.on_train_begin(
            trainer.args, trainer.state, trainer.control, model=trainer.model, optimizer=object()
        )
        assert callback.report().title == (
            "watched nothing: its optimizer, object, has no hooks to watch its steps by"
        )


class TestLogger:
    def test_gets_each_step_and_its_layers(self, tmp_path):
        given = []
        callback = diagnostics.TrainerCallback(every=5, logger=lambda values, step: given.append((step, values)))
        trained(tmp_path, callback)
        assert [step for step, values in given if "watch/loss" in values] == list(range(30))
        assert "watch_update_ratio/head" in given[0][1]
        assert callback.report().faults == ()

    def test_that_is_none_is_refused_before_training(self):
        with pytest.raises(diagnostics.InvalidInput) as error:
            diagnostics.TrainerCallback(logger="runs/")
        assert str(error.value).startswith("TrainerCallback() was given a str as logger. It takes a function")


class TestTrace:
    def test_records_the_modules_of_a_step(self, tmp_path):
        callback = diagnostics.TrainerCallback(trace_steps=[2])
        trained(tmp_path, callback, max_steps=4)
        (trace,) = callback.report().traces
        assert trace.step == 2
        assert [frame.module for frame in trace.frames] == ["body.0", "body.1", "body.2", "body", "head", ""]

    def test_of_no_step_is_refused_before_training(self):
        with pytest.raises(diagnostics.InvalidInput) as error:
            diagnostics.TrainerCallback(trace_steps=2)
        assert str(error.value).startswith("TrainerCallback() was given trace_steps=2. It takes step numbers")


@pytest.mark.parametrize("by_run", [False, True], ids=["callback", "diagnose run"])
def test_stop_on_keeps_the_bad_batch_from_weights_and_checkpoint(tmp_path, by_run):
    def end():
        raise diagnostics.TrainingStopped("seen by the run")

    callback = diagnostics.TrainerCallback(stop_on="error", quiet=True)
    trainer = make(
        tmp_path, None if by_run else callback, data=lambda: points(broken_row=40), save_strategy="steps",
        save_steps=1, save_total_limit=1,
    )  # fmt: skip
    run = ScriptObserver(on_broken=end) if by_run else None
    with pytest.raises(diagnostics.TrainingStopped) as stopped:
        trainer.train()
    if run is not None:
        run.close()
    else:
        assert stopped.value.report.findings[0].rule == "non-finite-inputs"
        assert stopped.value.report.batch().step == trainer.state.global_step
    (saved,) = tmp_path.glob("checkpoint-*")
    assert saved.name == f"checkpoint-{trainer.state.global_step}"
    weights = load_file(saved / "model.safetensors")
    assert all(torch.equal(value, weights[name]) for name, value in trainer.model.state_dict().items())
    assert all(value.isfinite().all() for value in weights.values())
