"""What `generate` is given, and what it returns where a script gives it no length."""

import pytest
import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
)

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch.dependence.kept_pass import KeptPass
from diagnostics.collectors.transformers.generations import Generations

BOS, PAD, EOS = 0, 1, 2
INPUTS = torch.tensor([[BOS, 5, 6, EOS], [BOS, 7, EOS, PAD]])


@pytest.fixture
def generations():
    """Observe the calls of one test."""
    faults, found = [], Generations()
    unsubscribe = found.listen(FaultGuard(on_fault=faults.append))
    yield found
    unsubscribe()
    assert faults == []


def bart():
    """Return a model that never ends a text."""
    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=12, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64,
        bos_token_id=BOS, pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=EOS, forced_eos_token_id=None,
    )  # fmt: skip
    model = BartForConditionalGeneration(config).eval()
    model.final_logits_bias[0, EOS] = -1e9
    return model


def kept(labels):
    return KeptPass(((), {"labels": labels}), None, None, False, None, False)


def targets(*lengths):
    """Return labels of these lengths, with the end token."""
    labels = torch.full((len(lengths), max(lengths)), -100)
    for row, length in enumerate(lengths):
        labels[row, : length - 1], labels[row, length - 1] = 5, EOS
    return labels


def test_counts_texts_that_end_at_the_default_length(generations):
    model = bart()
    model.generate(INPUTS)
    cut = generations.of(model, kept(targets(30, 12)))
    assert (cut.rows, cut.cut, cut.limit, cut.targets.tolist()) == (2, 2, 20, [30, 12])


def test_counts_texts_whose_end_the_configuration_forces(generations):
    model = bart()
    model.generation_config.forced_eos_token_id = EOS
    assert (model.generate(INPUTS)[:, -1] == EOS).all()
    assert generations.of(model, kept(targets(30, 12))).cut == 2


def test_counts_every_batch_of_an_evaluation(generations, tmp_path):
    rows = [{"input_ids": INPUTS[0], "labels": row} for row in targets(30, 30, 30, 30)]
    options = Seq2SeqTrainingArguments(
        str(tmp_path), predict_with_generate=True, per_device_eval_batch_size=2, report_to=[], use_cpu=True
    )
    model = bart()
    Seq2SeqTrainer(model, options, eval_dataset=rows, compute_metrics=lambda outcome: {}).evaluate()
    cut = generations.of(model, kept(targets(30, 12)))
    assert (cut.rows, cut.cut, cut.limit) == (4, 4, 20)


def test_takes_the_targets_of_a_trainer(generations):
    model = bart()
    model.generate(INPUTS)
    apart = KeptPass(((), {}), targets(30, 12), None, False, None, False)
    assert generations.of(model, apart).targets.tolist() == [30, 12]


def test_leaves_out_a_length_of_the_script(generations):
    model = bart()
    model.generate(INPUTS, max_new_tokens=4)
    model.generate(INPUTS, max_length=6)
    assert generations.of(model, kept(targets(30, 12))) is None


def test_does_not_count_texts_with_an_end_token(generations):
    model = bart()
    model.final_logits_bias[0, EOS] = 1e9
    model.generate(INPUTS)
    assert generations.of(model, kept(targets(30, 12))).cut == 0


def test_needs_targets_with_an_end_token(generations):
    model = bart()
    model.generate(INPUTS)
    assert generations.of(model, kept(torch.full((4, 30), 5))) is None


def gpt2():
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=12,
        n_positions=64,
        n_embd=16,
        n_layer=1,
        n_head=2,
        bos_token_id=0,
        eos_token_id=EOS,
        pad_token_id=1,
    )
    return GPT2LMHeadModel(config).eval()


def test_of_a_decoder_only_the_answer_counts(generations):
    model = gpt2()
    prompts = torch.full((3, 5), 7)
    model.generate(prompts, attention_mask=torch.ones_like(prompts))
    answers = torch.cat([torch.full((2, 5), -100), targets(9, 25)], 1)
    found = generations.of(model, kept(answers))
    assert (found.rows, found.limit, found.targets.tolist()) == (3, 20, [9, 25])
    assert generations.of(model, kept(targets(30, 12))) is None  # texts with their prompts


IDS = torch.tensor([[5, 6, 9, 3, 4, EOS], [7, 9, 4, EOS, PAD, PAD]])  # 9 separates prompt and answer
LABELS = torch.tensor([[-100, -100, -100, 3, 4, EOS], [-100, -100, 4, EOS, -100, -100]])
BEFORE = [[5, 6, 9], [-1, 7, 9]]


def trained(labels, target=None, ids=IDS, **named):
    inputs = {"input_ids": ids, "attention_mask": (ids != PAD).long(), **named}
    return KeptPass(
        ((), inputs if labels is None else inputs | {"labels": labels}), target, -100, True, None, True
    )


@pytest.mark.parametrize(
    "kept",
    [
        trained(LABELS),
        trained(None, LABELS),
        trained(None, LABELS[:, 1:].reshape(-1)),
        trained(None, LABELS[:, 1:].reshape(-1), ids=IDS[:, :-1]),
    ],
    ids=["labels of the model", "target of a Trainer", "next tokens", "next tokens of shifted inputs"],
)
def test_finds_the_tokens_before_each_answer(generations, kept):
    model = gpt2()
    prompts = torch.tensor([[PAD, 8, 5], [4, 6, 7]])
    texts = model.generate(prompts, attention_mask=torch.tensor([[0, 1, 1], [1, 1, 1]]), max_new_tokens=3)
    found = generations.prompts_of(model, kept)
    assert (found.trained.tolist(), found.generated.tolist()) == (BEFORE, [[-1, 8, 5], [4, 6, 7]])
    assert found.answers.tolist() == [3, 4]
    assert found.continued.tolist() == texts[:, 3:].tolist()


def test_keeps_one_prompt_for_several_texts_and_the_latest_prompts(generations):
    model = gpt2()
    for token in range(3, 9):
        given = torch.full((12, 4), token)
        model.generate(
            input_ids=given, attention_mask=torch.ones_like(given), do_sample=True, num_return_sequences=2,
            max_new_tokens=2,
        )  # fmt: skip
    found = generations.prompts_of(model, trained(LABELS))
    assert found.generated.shape == (64, 4)
    assert found.generated[:, 0].tolist() == [3] * 4 + [token for token in range(4, 9) for _ in range(12)]


def test_has_no_prompts_where_labels_are_not_those_of_tokens(generations):
    model = gpt2()
    model.generate(torch.tensor([[5, 6]]), attention_mask=torch.ones(1, 2), max_new_tokens=2)
    assert generations.prompts_of(model, trained(torch.tensor([1, 0]))) is None
    assert generations.prompts_of(model, trained(LABELS + 1)) is None


def test_has_no_prompts_of_an_encoder(generations):
    model = bart()
    model.generate(INPUTS)
    assert generations.prompts_of(model, trained(LABELS)) is None
