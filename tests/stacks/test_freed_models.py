"""What stays alive of a Lightning or TRL training under `diagnose run` once the script has dropped it."""

import contextlib
import gc
import weakref
from functools import partial

import pytest
import torch
from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

from diagnostics.run import second_look
from diagnostics.run.observer import ScriptObserver
from tests.stacks.lightning_programs import BROKEN, autoencoder, classifier

STEPS = 24
WORDS = ["<pad>", "<eos>", *"abcdefghijkl"]


def fitted(make, _folder, evaluates):
    """Train a LightningModule; return its Trainer and model."""
    program = make()
    trainer = program.fit(max_epochs=2)
    if evaluates:
        trainer.validate(program.module, program.validation, verbose=False)
    return trainer, program.module


def tuned(lora, folder, evaluates):
    """Train a GPT-2 with TRL; return its Trainer and model."""
    vocabulary = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<eos>"))
    vocabulary.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=vocabulary, pad_token="<pad>", eos_token="<eos>")
    drawn = torch.randint(2, 13, (64,), generator=torch.Generator().manual_seed(0)).tolist()
    rows = Dataset.from_list([{"prompt": WORDS[i], "completion": f" {WORDS[i + 1]}"} for i in drawn])
    evaluated = Dataset.from_list([{"prompt": f"{WORDS[i]} {WORDS[i]}", "completion": " b"} for i in drawn[:16]])
    size = {"vocab_size": 14, "n_positions": 8, "n_embd": 16, "n_layer": 1, "n_head": 2}
    config = GPT2Config(**size, bos_token_id=1, eos_token_id=1)
    arguments = SFTConfig(
        str(folder),
        max_steps=STEPS,
        per_device_train_batch_size=8,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
    )
    trainer = SFTTrainer(
        GPT2LMHeadModel(config),
        args=arguments,
        train_dataset=rows,
        eval_dataset=evaluated,
        processing_class=tokenizer,
        peft_config=lora,
    )
    trainer.train()
    if evaluates:
        trainer.evaluate()
    return trainer, trainer.model


WAYS = {
    "Lightning": (partial(fitted, classifier), True),
    "Lightning, two parts": (partial(fitted, autoencoder), False),
    "Lightning, a bug": (partial(fitted, BROKEN["softmax_before_cross_entropy"][0]), False),
    "TRL": (partial(tuned, None), False),
    "TRL with LoRA": (partial(tuned, LoraConfig(task_type="CAUSAL_LM", r=4, target_modules=["c_attn"])), True),
}


def train_one(train, folder, evaluates):
    """Train, and return what holds memory."""
    torch.manual_seed(0)
    trainer, model = train(folder, evaluates)
    (optimizer,) = getattr(trainer, "optimizers", None) or [trainer.optimizer.optimizer]
    parameter = next(p for p in model.parameters() if p in optimizer.state)
    return trainer, model, optimizer, parameter, optimizer.state[parameter]["exp_avg"]


def rules_of(run, looks_again):
    """Return the rules named for each training of a run, which ends now."""
    run.close()
    stage = run.look_again(60.0) if looks_again else None
    assert run.faults == []
    parts = [part for reports in run.reports() for part in (reports.examined, reports.watched)]
    rules = [sorted(finding.rule for finding in part.findings) for part in parts if part is not None]
    return rules, stage and stage.status


@pytest.fixture
def observe():
    """Return a function that makes an observer; each is closed at the end of the test, if not before."""
    with contextlib.ExitStack() as at_end:

        def observe(**options):
            run = ScriptObserver(**options)
            at_end.callback(run.close)
            return run

        yield observe


@pytest.mark.parametrize("looks_again", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_three_models_dropped_in_turn_are_gone_and_named_as_if_kept(way, looks_again, observe, tmp_path):
    train, evaluates = WAYS[way]
    run = observe(looks_again=looks_again)
    kept = train_one(train, tmp_path, evaluates)
    expected, looked = rules_of(run, looks_again)
    del kept
    run = observe(looks_again=looks_again)
    for _ in range(3):
        references = [weakref.ref(each) for each in train_one(train, tmp_path, evaluates)]
        gc.collect()
        gc.collect()  # of parts that are in cycles of their own, as those with an adapter
        trainer, model, optimizer, parameter, moment = [reference() is None for reference in references]
        assert (trainer, model, optimizer, moment) == (True,) * 4
        assert parameter or looks_again  # of a small model, for the second look
    assert rules_of(run, looks_again) == (expected * 3, looked)
    assert any("probabilities-as-logits" in rules for rules in expected) == (way == "Lightning, a bug")


@pytest.mark.parametrize("way", ["Lightning", "TRL with LoRA"])
def test_the_weights_of_a_large_model_are_gone_too(way, observe, tmp_path, monkeypatch):
    monkeypatch.setattr(second_look, "MOST_FREED", 0)
    run = observe(looks_again=True)
    references = [weakref.ref(each) for each in train_one(WAYS[way][0], tmp_path, False)]
    gc.collect()
    gc.collect()
    assert [reference() for reference in references] == [None] * 5
    assert rules_of(run, looks_again=True) == ([[], []], None)
