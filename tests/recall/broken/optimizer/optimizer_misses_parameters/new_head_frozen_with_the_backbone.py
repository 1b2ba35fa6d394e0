"""BERT of a folder, all frozen but its last layer: the new classifier is frozen with the rest."""

# names: optimizer-misses-parameters
# A pattern of public questions: accuracy stays low after freezing `model.parameters()` of a classifier.
import tempfile

import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, set_seed

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
    model = BertForSequenceClassification.from_pretrained(folder, num_labels=CLASSES)
for parameter in model.parameters():
    parameter.requires_grad = False
for parameter in model.bert.encoder.layer[-1].parameters():
    parameter.requires_grad = True

optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-3)
loader = DataLoader(TensorDataset(texts, labels), batch_size=32, shuffle=True)
model.train()
for epoch in range(4):
    right = 0
    for ids, wanted in loader:
        output = model(input_ids=ids, labels=wanted)
        optimizer.zero_grad()
        output.loss.backward()
        optimizer.step()
        right += int((output.logits.argmax(-1) == wanted).sum())
    print(f"epoch {epoch}: accuracy {right / len(texts):.3f}")
