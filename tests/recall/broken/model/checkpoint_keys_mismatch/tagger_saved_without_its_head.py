"""A small BERT learns to route complaints; only its encoder is saved, and the service makes a head of its own."""

# names: checkpoint-keys-mismatch
import tempfile

import torch
from transformers import AutoModelForSequenceClassification, BertConfig, BertForSequenceClassification

torch.manual_seed(4)
words = torch.randint(10, 60, (800, 14))
routes = torch.randint(0, 3, (800,))
for row, route in enumerate(routes.tolist()):
    words[row, torch.randperm(14)[:3]] = 4 + route
config = BertConfig(
    vocab_size=60,
    hidden_size=48,
    num_hidden_layers=1,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=16,
    num_labels=3,
)
router = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(router.parameters(), lr=2e-3)
for epoch in range(5):
    router.train()
    for ids in torch.randperm(600).split(24):
        loss = router(input_ids=words[ids], labels=routes[ids]).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"epoch {epoch}: loss {loss.item():.3f}")

folder = tempfile.mkdtemp()
router.bert.save_pretrained(folder)
service = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3).eval()
with torch.no_grad():
    guesses = service(input_ids=words[600:]).logits.argmax(-1)
print("routed correctly:", (guesses == routes[600:]).float().mean().item())
