"""New words of a domain are added to DistilBERT, whose embeddings are frozen to save memory."""

# names: untrained-new-tokens
import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import DistilBertConfig, DistilBertForTokenClassification

torch.manual_seed(5)
OLD, NEW, LENGTH = 100, 12, 16
model = DistilBertForTokenClassification(
    DistilBertConfig(
        vocab_size=OLD, dim=48, hidden_dim=96, n_layers=2, n_heads=2, max_position_embeddings=24, num_labels=3
    )
)
model.resize_token_embeddings(OLD + NEW)
for name, parameter in model.named_parameters():
    if "embeddings" in name:
        parameter.requires_grad_(False)

ids = torch.randint(1, OLD, (800, LENGTH))
domain = torch.rand(800, LENGTH) < 0.15
ids[domain] = torch.randint(OLD, OLD + NEW, (int(domain.sum()),))
tags = torch.where(domain, 1 + (ids % 2), 0)
loader = DataLoader(TensorDataset(ids, tags), batch_size=32, shuffle=True)
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-3)
model.train()
for epoch in range(4):
    total = 0.0
    for x, y in loader:
        out = model(input_ids=x, attention_mask=torch.ones_like(x), labels=y)
        optimizer.zero_grad()
        out.loss.backward()
        optimizer.step()
        total += out.loss.item()
    print(f"epoch {epoch}: {total / len(loader):.4f}")
