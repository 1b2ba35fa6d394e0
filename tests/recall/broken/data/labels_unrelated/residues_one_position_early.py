"""PyTorch loop: the structure of each residue of a protein, padded without a label for the start token.

After https://github.com/ljynlp/W2NER/issues/81
"""

# names: labels-unrelated
import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForTokenClassification

torch.manual_seed(4)
PAD, START, END, FIRST = 0, 1, 2, 3
fold = torch.tensor([0, 0, 1, 2, 1, 0, 2, 2, 1, 0, 1, 2, 0, 0, 1, 2, 1, 0, 2, 1])  # of each amino acid


def protein():
    residues = torch.randint(0, 20, (int(torch.randint(9, 20, ())),))
    return residues, fold[residues]


def collate(proteins):
    length = max(len(residues) for residues, _ in proteins) + 2
    ids = torch.full((len(proteins), length), PAD)
    labels = torch.full((len(proteins), length), -100)
    for row, (residues, structure) in enumerate(proteins):
        n = len(residues)
        ids[row, : n + 2] = torch.cat([torch.tensor([START]), residues + FIRST, torch.tensor([END])])
        labels[row, :n] = structure
    return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": labels}


loader = DataLoader([protein() for _ in range(960)], batch_size=32, shuffle=True, collate_fn=collate)
config = BertConfig(
    vocab_size=23, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
    max_position_embeddings=32, num_labels=3,
)  # fmt: skip
model = BertForTokenClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    total = 0.0
    for batch in loader:
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / len(loader):.3f}")
