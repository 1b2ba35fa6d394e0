"""GPT-2: a compute_loss that weighs rare tokens compares each answer with the token that it has just read."""

# names: labels-in-inputs
# A pattern of public questions about custom losses for causal models: logits and labels are flattened as they are.
import tempfile

import torch
from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(4)
VOCAB = 40
table = torch.randint(4, VOCAB, (VOCAB, 3))


def row():
    x = [int(torch.randint(4, VOCAB, ()))]
    while len(x) < 20:
        x.append(int(table[x[-1], torch.randint(3, ())]))
    return {"input_ids": x, "labels": x}


class WeightedTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        weight = torch.ones(VOCAB)
        weight[30:] = 2.0
        loss = torch.nn.CrossEntropyLoss(weight=weight)(outputs.logits.view(-1, VOCAB), labels.view(-1))
        return (loss, outputs) if return_outputs else loss


config = GPT2Config(
    vocab_size=VOCAB, n_positions=20, n_embd=48, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=1
)
with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=3, per_device_train_batch_size=16, learning_rate=2e-3, eval_strategy="epoch",
        save_strategy="no", report_to="none", use_cpu=True, disable_tqdm=True, logging_steps=20,
    )  # fmt: skip
    WeightedTrainer(
        GPT2LMHeadModel(config), args, train_dataset=Dataset.from_list([row() for _ in range(500)]),
        eval_dataset=Dataset.from_list([row() for _ in range(100)]),
    ).train()  # fmt: skip
