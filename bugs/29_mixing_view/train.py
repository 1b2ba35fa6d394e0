"""Train a small network to answer questions about what lies on a table.

$ python bugs/29_mixing_view/train.py
"""

import os
import re

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from bugs import lab

# -----------------------------------------------------------------------------
WIDTH = 32  # of embeddings, and of the LSTMs in each direction
BATCH_SIZE = 32
EPOCHS = 30
LEARNING_RATE = 3e-3
SEED = int(os.environ.get("ZOO_SEED", 0))
# -----------------------------------------------------------------------------

torch.manual_seed(SEED)


# data: "On the table: red cups, blue hats.", "What is blue?", and the answer, "hats"
def lookups(split):
    rows = []
    for task, answer in lab.instructions()[split]["messages"]:
        parts = re.fullmatch(r"On the table: (.*)\. (What is .*)\?", task["content"])
        if parts:
            table, question = (part.replace(",", "").split() for part in parts.groups())
            rows.append((table, question, answer["content"].rstrip(".").split()[-1]))
    return rows


train_rows, validation_rows = lookups("train"), lookups("validation")
words = sorted({word for row in train_rows for part in row[:2] for word in part})
ids = {word: number for number, word in enumerate(words, start=1)}  # 0 is padding


def collate(rows):
    """Return padded word ids of tables and questions, and the ids of the answers."""
    tables, questions, answers = zip(*rows, strict=True)
    tables, questions = (
        pad_sequence([torch.tensor([ids[word] for word in one]) for one in part], True)
        for part in (tables, questions)
    )
    return tables, questions, torch.tensor([ids[word] for word in answers])


train = DataLoader(train_rows, BATCH_SIZE, shuffle=True, collate_fn=collate)
validation = DataLoader(validation_rows, BATCH_SIZE, collate_fn=collate)


# model: the question says where to look on the table
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(ids) + 1, WIDTH, padding_idx=0)
        self.table = nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.question = nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * WIDTH, len(ids) + 1)

    def forward(self, tables, questions):
        states, _ = self.table(self.embedding(tables))
        _, (last, _) = self.question(self.embedding(questions))
        query = last.view(len(questions), 2 * WIDTH)  # both directions side by side
        scores = torch.einsum("rwh,rh->rw", states, query)
        weights = scores.masked_fill(tables == 0, float("-inf")).softmax(dim=1)
        return self.head(torch.einsum("rwh,rw->rh", states, weights))


model = Reader()
optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)

for epoch in range(1, EPOCHS + 1):
    model.train()
    total = 0.0
    for tables, questions, answers in train:
        loss = F.cross_entropy(model(tables, questions), answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 5 == 0:
        print(f"epoch {epoch:2}: loss {total / len(train):.3f}")

model.eval()
with torch.no_grad():
    said = [
        model(tables, questions).argmax(dim=1) for tables, questions, _ in validation
    ]
said = [words[number - 1] for number in torch.cat(said).tolist()]
wanted = [answer for _, _, answer in validation_rows]
right = [word == answer for word, answer in zip(said, wanted, strict=True)]
print(f"train_loss={total / len(train):.3f}")
print(f"eval_accuracy={sum(right) / len(right):.3f}")
