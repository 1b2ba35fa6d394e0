"""A small BERT: the schedule of transformers counts batches, and is stepped once an epoch."""

# names: learning-rate-too-low
import torch
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

torch.manual_seed(0)
ids = torch.randint(5, 60, (320, 12))
lab = (ids < 20).sum(1).gt(3).long()
model = BertForSequenceClassification(
    BertConfig(
        vocab_size=60,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=16,
    )
)
dl = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(ids, lab), batch_size=16, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
epochs = 6
total = epochs * len(dl)
scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=int(0.6 * total), num_training_steps=total)
for epoch in range(epochs):
    model.train()
    running = 0.0
    for b, y in dl:
        optimizer.zero_grad()
        out = model(input_ids=b, attention_mask=torch.ones_like(b), labels=y)
        out.loss.backward()
        optimizer.step()
        running += out.loss.item()
    scheduler.step()
    print(epoch, running / len(dl), scheduler.get_last_lr())
