"""A small encoder with learned positions reads the start of a gene; its test batches are aligned at the end."""

# names: evaluation-mismatch
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
WIDTH = 20


class Encoder(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.bases, self.places = nn.Embedding(5, size, padding_idx=0), nn.Embedding(WIDTH, size)
        layer = nn.TransformerEncoderLayer(size, 4, 64, dropout=0.0, batch_first=True)
        self.layers, self.out = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(size, 4)

    def forward(self, sequence, known):
        hidden = self.bases(sequence) + self.places(torch.arange(sequence.shape[1]))
        hidden = self.layers(hidden, src_key_padding_mask=~known)
        return self.out((hidden * known[..., None]).sum(1) / known.sum(1, keepdim=True))


def genes(rows, side):
    """Return genes of 8 to 20 bases, which bases are known, and the class: the fourth base."""
    found = [torch.randint(1, 5, (int(length),)) for length in torch.randint(8, WIDTH + 1, (rows,))]
    blanks = [torch.zeros(WIDTH - len(gene), dtype=torch.long) for gene in found]
    pairs = [(blank, gene) if side == "left" else (gene, blank) for gene, blank in zip(found, blanks)]
    sequence = torch.stack([torch.cat(pair) for pair in pairs])
    return sequence, sequence > 0, torch.stack([gene[3] - 1 for gene in found])


def train(model, steps):
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for step in range(steps):
        sequence, known, kind = genes(64, "right")
        loss = F.cross_entropy(model(sequence, known), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.inference_mode()
def test(model):
    model.eval()
    sequence, known, kind = genes(256, "left")
    return (model(sequence, known).argmax(-1) == kind).float().mean().item()


encoder = Encoder()
print("loss", round(train(encoder, 400), 4))
print("accuracy", round(test(encoder), 3))
