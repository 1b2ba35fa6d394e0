"""BERT of a folder, frozen but for its last layer, under a head of the mean, which does not use the new pooler."""

import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForMaskedLM, BertModel, set_seed

set_seed(3)
WORDS, LENGTH, CLASSES = 40, 10, 4
labels = torch.randint(CLASSES, (960,))
texts = torch.randint(4, WORDS, (960, LENGTH))
texts[torch.arange(960), torch.randint(LENGTH, (960,))] = labels + WORDS - CLASSES

config = BertConfig(
    vocab_size=WORDS, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
    max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=CLASSES,
)  # fmt: skip
with tempfile.TemporaryDirectory() as folder:
    BertForMaskedLM(config).save_pretrained(folder)
    bert = BertModel.from_pretrained(folder)


class MeanOfStates(nn.Module):
    def __init__(self, bert):
        super().__init__()
        self.bert, self.head = bert, nn.Linear(48, CLASSES)

    def forward(self, ids):
        return self.head(self.bert(input_ids=ids).last_hidden_state.mean(1))


bert.requires_grad_(False)
model = MeanOfStates(bert)
for parameter in model.bert.encoder.layer[-1].parameters():
    parameter.requires_grad = True

optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-3)
loader = DataLoader(TensorDataset(texts, labels), batch_size=32, shuffle=True)
model.train()
for epoch in range(4):
    right = 0
    for ids, wanted in loader:
        logits = model(ids)
        loss = nn.functional.cross_entropy(logits, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += int((logits.argmax(-1) == wanted).sum())
    print(f"epoch {epoch}: accuracy {right / len(texts):.3f}")
