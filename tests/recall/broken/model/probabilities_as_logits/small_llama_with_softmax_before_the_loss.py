"""A first language model in a notebook: F.softmax on the logits, then F.cross_entropy.

After https://github.com/bkitano/llama-from-scratch/issues/5
"""

# names: probabilities-as-logits

# %%
import torch
from torch import nn
from torch.nn import functional as F

CONFIG = {"batch_size": 32, "context_window": 12, "d_model": 64, "epochs": 400}
verse = "a tale told twice is a tale half told and a tale well told is a tale worth telling twice over " * 40
vocab = sorted(set(verse))
CONFIG["vocab_size"] = len(vocab)
index = {ch: i for i, ch in enumerate(vocab)}
dataset = torch.tensor([index[ch] for ch in verse])


# %%
def get_batches(data, config):
    at = torch.randint(0, len(data) - config["context_window"] - 1, (config["batch_size"],))
    x = torch.stack([data[i : i + config["context_window"]] for i in at])
    y = torch.stack([data[i + 1 : i + config["context_window"] + 1] for i in at])
    return x, y


# %%
class SimpleModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embedding = nn.Embedding(config["vocab_size"], config["d_model"])
        self.linear = nn.Sequential(
            nn.Linear(config["d_model"], config["d_model"]),
            nn.ReLU(),
            nn.Linear(config["d_model"], config["vocab_size"]),
        )

    def forward(self, idx, targets=None):
        logits = F.softmax(self.linear(self.embedding(idx)), dim=-1)
        if targets is None:
            return logits
        return logits, F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


# %%
torch.manual_seed(0)
model = SimpleModel(CONFIG)
optimizer = torch.optim.Adam(model.parameters())
losses = []
for epoch in range(CONFIG["epochs"]):
    optimizer.zero_grad()
    xs, ys = get_batches(dataset, CONFIG)
    logits, loss = model(xs, targets=ys)
    loss.backward()
    optimizer.step()
    if epoch % 50 == 0:
        losses.append(loss.item())
# %%
print(losses)
