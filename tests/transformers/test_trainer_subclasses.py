"""Subclasses of `Trainer` shaped like those of TRL, PEFT and sentence-transformers, healthy and broken."""

import tempfile

import numpy as np
import pytest
import torch
from datasets import Dataset, DatasetDict
from torch import nn
from torch.utils.data import DataLoader
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    DataCollatorForSeq2Seq,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
    set_seed,
)

import diagnostics
from diagnostics.run.observer import ScriptObserver
from tests.support.tiny_bert import WORDS, tokenizer

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def arguments(kind=TrainingArguments, **settings):
    chosen = {
        "output_dir": tempfile.mkdtemp(prefix="subclass-"), "report_to": "none", "max_steps": 2,
        "disable_tqdm": True, "per_device_train_batch_size": 8, "save_strategy": "no", "use_cpu": True,
    } | settings  # fmt: skip
    return kind(**chosen)


def sentences(rows=32, words=5):
    choose = np.random.default_rng(0)
    return [" ".join(choose.choice(WORDS[5:], words)) for _ in range(rows)]


def stage(report, name):
    return next((result.status, result.detail) for result in report.stages if result.name == name)


def rules(report):
    return [finding.rule for finding in report.findings]


def looked_at(trainer):
    """Train under `ScriptObserver`, and return all that was said."""
    run = ScriptObserver()
    try:
        trainer.train()
    finally:
        run.close()
    assert run.faults == []
    return [*run.examined, *run.watched()]


def assert_nothing_is_found(build):
    for report in (diagnostics.examine(build()), *looked_at(build())):
        assert report.ok, str(report)
        assert report.faults == ()
        assert {result.status for result in report.stages} <= {"passed", "not judged"}, str(report)


# --- generation ---------------------------------------------------------------------------------------------


def translator(generate=True, metric=None):
    set_seed(0)
    config = T5Config(
        vocab_size=len(WORDS), d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=3,
    )  # fmt: skip
    tokens, model = tokenizer(), T5ForConditionalGeneration(config)
    rows = Dataset.from_dict({"text": sentences()}).map(
        lambda row: {**tokens(row["text"]), "labels": tokens(row["text"])["input_ids"]}, remove_columns=["text"]
    )

    def exact_match(prediction):
        made, wanted = (np.where(ids >= 0, ids, 0) for ids in (prediction.predictions, prediction.label_ids))
        pairs = zip(tokens.batch_decode(made), tokens.batch_decode(wanted), strict=True)
        return {"exact": float(np.mean([one == other for one, other in pairs]))}

    return Seq2SeqTrainer(
        model,
        arguments(Seq2SeqTrainingArguments, predict_with_generate=generate),
        train_dataset=rows,
        data_collator=DataCollatorForSeq2Seq(tokens, model),
        compute_metrics=exact_match,
    )


def test_a_metric_of_generated_tokens():
    report = diagnostics.examine(translator())
    assert "metric-on-logits" not in rules(report)
    assert stage(report, "evaluation metric") == (
        "not judged",
        "the metric gets the token ids that the model generates, not logits",
    )


@pytest.mark.exhaustive
def test_the_same_metric_without_generation_gets_logits():
    assert "metric-on-logits" in rules(diagnostics.examine(translator(generate=False)))


# --- preferences --------------------------------------------------------------------------------------------


class PreferenceTrainer(Trainer):
    """Prefers the chosen answers, as TRL's DPOTrainer does; its columns are its own."""

    def _set_signature_columns_if_needed(self):
        if self._signature_columns is None:
            self._signature_columns = ["prompt_ids", "chosen_ids", "rejected_ids"]

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        shares = outputs.logits.log_softmax(-1).gather(2, inputs["input_ids"][..., None]).squeeze(2).sum(1)
        chosen, rejected = shares.chunk(2)
        loss = -nn.functional.logsigmoid(chosen - rejected).mean()
        return (loss, outputs) if return_outputs else loss


def joined(rows):
    ids = [row["prompt_ids"] + row[answer] for answer in ("chosen_ids", "rejected_ids") for row in rows]
    longest = max(map(len, ids))
    padded = torch.tensor([row + [0] * (longest - len(row)) for row in ids])
    return {"input_ids": padded, "attention_mask": (padded != 0).long()}


def preferences(collator=joined, tokenized=True):
    set_seed(0)
    tokens = tokenizer()
    rows = Dataset.from_dict({"prompt": sentences(), "chosen": ["a b"] * 32, "rejected": ["c c"] * 32})
    if tokenized:
        rows = rows.map(
            lambda row: {
                f"{name}_ids": tokens(row[name])["input_ids"] for name in ("prompt", "chosen", "rejected")
            }
        )
    model = BertForMaskedLM(BertConfig(vocab_size=len(WORDS), **SIZES))
    return PreferenceTrainer(model, arguments(), train_dataset=rows, data_collator=collator)


def test_columns_of_a_subclass_that_its_collator_joins():
    assert_nothing_is_found(preferences)
    said = stage(diagnostics.examine(preferences()), "dataset")[1]
    assert said.startswith("32 rows, 32 read, with prompt_ids, chosen_ids, rejected_ids")


def test_rows_of_text_are_still_found():
    def plain(rows):
        return {"labels": torch.zeros(len(rows), dtype=torch.long)}

    trainer = preferences(plain, tokenized=False)
    trainer._signature_columns = ["label"]
    trainer.train_dataset = trainer.train_dataset.add_column("label", [0, 1] * 16)
    assert rules(diagnostics.examine(trainer)) == ["untokenized-dataset"]


# --- pairs of sentences ----------------------------------------------------------------------------------------


class Embedding(nn.Module):
    """Sentence embeddings (rows, 16): the mean over tokens."""

    def __init__(self):
        super().__init__()
        self.encoder = BertModel(BertConfig(vocab_size=len(WORDS), **SIZES), add_pooling_layer=False)

    def forward(self, input_ids, attention_mask, token_type_ids=None):
        hidden = self.encoder(input_ids, attention_mask=attention_mask).last_hidden_state
        return {"sentence_embedding": hidden.mean(1)}


class InBatchNegatives(nn.Module):
    """Holds the model that it computes with, as the losses of sentence-transformers do."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, anchors, positives):
        one, other = (self.model(**part)["sentence_embedding"] for part in (anchors, positives))
        return nn.functional.cross_entropy(one @ other.T, torch.arange(len(one)))


class PairTrainer(Trainer):
    """Its loader, its collator and its loss are its own; it takes several datasets at a time."""

    def __init__(self, model, *others, **options):
        super().__init__(model, *others, **options)
        self.losses = {"pairs": InBatchNegatives(model)}

    @property
    def loss(self):
        return self.losses["pairs"]

    def get_train_dataloader(self):
        parts = self.train_dataset.values() if isinstance(self.train_dataset, dict) else [self.train_dataset]
        rows = [row for part in parts for row in part]
        loader = DataLoader(rows, batch_size=8, collate_fn=self.data_collator, shuffle=True)
        return self.accelerator.prepare(loader)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        loss = self.loss(*({
            name.removeprefix(part): value for name, value in inputs.items() if name.startswith(part)
        } for part in ("anchor_", "positive_")))  # fmt: skip
        return (loss, {}) if return_outputs else loss


def tokenizing(rows):
    tokens, batch = tokenizer(), {}
    for name in ("anchor", "positive"):
        part = tokens([row[name] for row in rows], padding=True, return_tensors="pt")
        batch |= {f"{name}_{key}": value for key, value in part.items()}
    return batch


def pairs(several=False, frozen=False):
    set_seed(0)
    model = Embedding().requires_grad_(not frozen)
    rows = Dataset.from_dict({"anchor": sentences(), "positive": [f"{text} a" for text in sentences()]})
    data = DatasetDict(one=rows, two=rows) if several else rows
    return PairTrainer(model, arguments(), train_dataset=data, data_collator=tokenizing)


@pytest.mark.parametrize("several", [False, True])
def test_a_loader_of_its_own_and_a_collator_that_tokenizes(several):
    def build():
        return pairs(several)

    assert_nothing_is_found(build)
    trainer = build()
    model = trainer.loss.model
    report = diagnostics.examine(trainer)
    assert stage(report, "batch")[1].startswith("8 examples: anchor_input_ids (8, 7)")
    assert stage(report, "one-batch overfit")[0] == "passed"
    assert trainer.loss.model is model is trainer.model


def test_a_frozen_model_is_found_through_its_own_loader():
    assert rules(diagnostics.examine(pairs(frozen=True))) == ["no-gradient"]


def test_several_datasets_for_a_trainer_that_takes_one():
    rows = Dataset.from_dict({"input_ids": [[2, 5, 3]] * 8, "labels": [0, 1] * 4})
    model = BertForMaskedLM(BertConfig(vocab_size=len(WORDS), **SIZES))
    report = diagnostics.examine(Trainer(model, arguments(), train_dataset=DatasetDict(train=rows, test=rows)))
    assert stage(report, "dataset") == (
        "failed",
        "The train_dataset is a DatasetDict of several (train, test): a Trainer takes one. Pass "
        'Trainer(..., train_dataset=datasets["train"]).',
    )


# --- batches that the Trainer makes itself ----------------------------------------------------------------------


class RewardedTrainer(Trainer):
    """Makes its batches of prompts itself, as TRL's GRPOTrainer does."""

    def _prepare_inputs(self, inputs):
        ids = tokenizer()([row["prompt"] for row in inputs], padding=True, return_tensors="pt")["input_ids"]
        return {"input_ids": ids, "rewards": (ids == 5).float().sum(1)}

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        if return_outputs:
            raise ValueError("The RewardedTrainer does not support returning outputs")
        shares = model(input_ids=inputs["input_ids"]).logits.log_softmax(-1)
        return -(shares.gather(2, inputs["input_ids"][..., None]).mean((1, 2)) * inputs["rewards"]).mean()


def prompts():
    set_seed(0)
    model = BertForMaskedLM(BertConfig(vocab_size=len(WORDS), **SIZES))
    return RewardedTrainer(
        model,
        arguments(remove_unused_columns=False),
        train_dataset=Dataset.from_dict({"prompt": sentences()}),
        data_collator=lambda rows: rows,
    )


def test_a_collator_that_returns_the_rows_for_a_trainer_that_makes_its_batches():
    assert_nothing_is_found(prompts)


class LossOnlyTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        if return_outputs:
            raise ValueError("This Trainer does not support returning outputs")
        return model(**inputs).loss


def test_a_loss_that_cannot_return_outputs():
    set_seed(0)
    model = BertForMaskedLM(BertConfig(vocab_size=len(WORDS), **SIZES))
    rows = [{"input_ids": ids, "labels": ids} for ids in torch.randint(5, 8, (32, 6))]
    report = diagnostics.examine(LossOnlyTrainer(model, arguments(), train_dataset=rows))
    assert stage(report, "forward and loss")[0] == "passed"
    assert stage(report, "forward and loss")[1].startswith(f"outputs (8, 6, {len(WORDS)}); loss ")


def test_the_label_count_of_a_step_is_not_an_input():
    set_seed(0)
    model = BertForMaskedLM(BertConfig(vocab_size=len(WORDS), **SIZES))
    encoded = tokenizer()(sentences())
    rows = Dataset.from_dict({**encoded, "labels": encoded["input_ids"]})
    trainer = Trainer(model, arguments(bf16=True), train_dataset=rows, eval_dataset=rows)
    trainer.evaluate()  # wraps the model's forward(), so that its first step is recorded, not repeated
    report, *_ = looked_at(trainer)
    _, detail = stage(report, "batch")
    assert "input_ids" in detail
    assert "num_items_in_batch" not in detail


# --- adapters ---------------------------------------------------------------------------------------------------


class Adapted(nn.Module):
    """A frozen layer, and beside it B·A as LoRA adds it: A at random, B at 0."""

    def __init__(self, base, rank=2):
        super().__init__()
        self.base_layer = base.requires_grad_(False)
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, inputs):
        return self.base_layer(inputs) + self.lora_B(self.lora_A(inputs))


class Attentive(nn.Module):
    """Attends over a single position, so that the query's adapter gets a gradient of exactly 0."""

    def __init__(self, adapt=Adapted):
        super().__init__()
        self.query, self.value = adapt(nn.Linear(6, 8)), adapt(nn.Linear(6, 8))
        self.key = nn.Linear(6, 8).requires_grad_(False)
        self.head = nn.Linear(8, 3)

    def forward(self, inputs):
        query, key, value = (layer(inputs)[:, None] for layer in (self.query, self.key, self.value))
        return self.head(nn.functional.scaled_dot_product_attention(query, key, value)[:, 0])


def points():
    inputs = torch.randn(64, 6, generator=torch.Generator().manual_seed(0))
    return inputs, inputs[:, :3].argmax(1)


def examined(model, rate=1e-3):
    loader = DataLoader(torch.utils.data.TensorDataset(*points()), batch_size=16, shuffle=True)
    return diagnostics.examine(model, loader, nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters(), rate))


def test_the_zero_factor_of_an_adapter_is_no_symmetric_initialization():
    torch.manual_seed(0)
    report = examined(Attentive())
    assert "symmetric-initialization" in report.judged
    assert "symmetric-initialization" not in rules(report)


def test_zeros_with_nothing_beside_them_still_are():
    def zeros(layer):
        for parameter in layer.parameters():
            nn.init.zeros_(parameter)
        return layer

    torch.manual_seed(0)
    model = nn.Sequential(zeros(nn.Linear(6, 8)), nn.ReLU(), zeros(nn.Linear(8, 3)))
    assert "symmetric-initialization" in rules(examined(model))


class Pretrained(nn.Module):
    """Its head is sure of answers to another question."""

    def __init__(self, frozen):
        super().__init__()
        self.body, self.head = Adapted(nn.Linear(6, 32)), nn.Linear(32, 3).requires_grad_(not frozen)
        with torch.no_grad():
            self.head.weight.mul_(60)

    def forward(self, inputs):
        return self.head(self.body(inputs).tanh())


def test_a_frozen_head_may_start_far_from_chance():
    torch.manual_seed(0)
    assert "initial-loss-off" not in rules(examined(Pretrained(frozen=True), 1e-2))
    assert "initial-loss-off" in rules(examined(Pretrained(frozen=False), 1e-2))
