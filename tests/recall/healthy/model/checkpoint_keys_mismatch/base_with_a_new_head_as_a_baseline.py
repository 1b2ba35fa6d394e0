"""After fine-tuning, the base model with a head of random weights shows what the fine-tuning has brought."""

import tempfile

import torch
from transformers import AutoModelForSequenceClassification, BertConfig, BertModel

torch.manual_seed(6)
tokens = torch.randint(10, 60, (700, 12))
species = torch.randint(0, 3, (700,))
for row, kind in enumerate(species.tolist()):
    tokens[row, torch.randperm(12)[:4]] = 4 + kind
config = BertConfig(
    vocab_size=60,
    hidden_size=48,
    num_hidden_layers=1,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=16,
)
folder = tempfile.mkdtemp()
BertModel(config).save_pretrained(folder)


def accuracy(model):
    model.eval()
    with torch.no_grad():
        return (model(input_ids=tokens[500:]).logits.argmax(-1) == species[500:]).float().mean().item()


model = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for _ in range(6):
    model.train()
    for ids in torch.randperm(500).split(20):
        loss = model(input_ids=tokens[ids], labels=species[ids]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"fine-tuned {accuracy(model):.3f}")
untuned = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3)
print(f"base with a random head {accuracy(untuned):.3f}")
