"""A plain PyTorch transformer with a padding mask: which of four symbols is the most frequent?

$ python tests/healthy/pytorch/transformer_encoder.py
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

SYMBOLS, LONGEST, CLASSES = 5, 24, 4  # id 0 is padding
EPOCHS = 4


def sequences(rows, seed):
    """Return dicts of ids (length,) and the label: the symbol, counted from 0, that half of the ids are."""
    generator = torch.Generator().manual_seed(seed)
    examples = []
    for _ in range(rows):
        length = int(torch.randint(6, LONGEST + 1, (1,), generator=generator))
        label = int(torch.randint(CLASSES, (1,), generator=generator))
        ids = torch.randint(1, SYMBOLS, (length,), generator=generator)
        ids[torch.randperm(length, generator=generator)[: length // 2]] = 1 + label
        examples.append({"ids": ids, "label": label})
    return examples


def collate(examples):
    """Return a dict of ids (batch, longest), their padding mask (True: padding), and labels (batch,)."""
    ids = pad_sequence([example["ids"] for example in examples], batch_first=True)
    labels = torch.tensor([example["label"] for example in examples])
    return {"ids": ids, "padding": ids == 0, "labels": labels}


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.tokens = nn.Embedding(SYMBOLS, width, padding_idx=0)
        self.positions = nn.Embedding(LONGEST, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, ids, padding):
        states = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        states = self.layers(states, src_key_padding_mask=padding)
        kept = (~padding).unsqueeze(-1)
        return self.head((states * kept).sum(1) / kept.sum(1))


def build():
    torch.manual_seed(0)
    model = Encoder()
    loader = DataLoader(sequences(1024, seed=1), batch_size=32, shuffle=True, collate_fn=collate)
    return model, loader, nn.CrossEntropyLoss(), torch.optim.AdamW(model.parameters(), lr=2e-3)


def train(model, loader, loss_fn, optimizer):
    held_out = collate(sequences(256, seed=2))
    labels = held_out.pop("labels")

    @torch.no_grad()
    def evaluate():
        logits = model.eval()(**held_out)
        return loss_fn(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item()

    before, _ = evaluate()
    for _ in range(EPOCHS):
        model.train()
        for batch in loader:
            target = batch.pop("labels")
            optimizer.zero_grad()
            loss_fn(model(**batch), target).backward()
            optimizer.step()
    after, accuracy = evaluate()
    return {"loss_before": before, "loss_after": after, "accuracy": accuracy}


if __name__ == "__main__":
    print(train(*build()))
