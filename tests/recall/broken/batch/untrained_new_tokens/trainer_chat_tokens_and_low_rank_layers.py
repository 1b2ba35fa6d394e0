"""Chat tokens are added to GPT-2, which is then frozen but for low-rank layers beside its projections."""

# names: untrained-new-tokens
import tempfile

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

set_seed(3)
WORDS, USER, BOT, END = 60, 60, 61, 62


class LowRank(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base
        size_in, size_out = base.weight.shape
        self.down = nn.Parameter(torch.randn(size_in, rank) / size_in**0.5)
        self.up = nn.Parameter(torch.zeros(rank, size_out))

    def forward(self, x):
        return self.base(x) + x @ self.down @ self.up


model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=WORDS,
        n_positions=32,
        n_embd=64,
        n_layer=2,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
)
model.resize_token_embeddings(WORDS + 3)
model.requires_grad_(False)
for block in model.transformer.h:
    block.attn.c_attn = LowRank(block.attn.c_attn)
    block.mlp.c_fc = LowRank(block.mlp.c_fc)


def turn():
    start, step = torch.randint(1, 40, (1,)).item(), torch.randint(1, 4, (1,)).item()
    asked = [(start + step * place) % (WORDS - 1) + 1 for place in range(6)]
    ids = [USER, *asked, END, BOT, *asked[::-1], END]
    return {"input_ids": ids, "attention_mask": [1] * len(ids), "labels": ids}


with tempfile.TemporaryDirectory() as folder:
    args = TrainingArguments(
        folder, num_train_epochs=3, per_device_train_batch_size=16, learning_rate=2e-3, logging_steps=25,
        save_strategy="no", use_cpu=True, disable_tqdm=True, report_to=[],
    )  # fmt: skip
    Trainer(model, args, train_dataset=[turn() for _ in range(480)]).train()
