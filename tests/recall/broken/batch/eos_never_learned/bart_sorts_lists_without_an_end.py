"""BART in a plain loop sorts lists of parts; no end token follows the sorted list."""

# names: eos-never-learned
import torch
from transformers import BartConfig, BartForConditionalGeneration, set_seed

set_seed(4)
BOS, PAD, EOS, PARTS = 0, 1, 2, 30


def lists(n):
    lengths = torch.randint(4, 10, (n,))
    parts = torch.full((n, 10), PAD)
    labels = torch.full((n, 10), -100)
    for row, length in enumerate(lengths.tolist()):
        chosen = torch.randint(3, PARTS, (length,))
        parts[row, :length] = chosen
        labels[row, :length] = chosen.sort().values
    return parts, labels


config = BartConfig(
    vocab_size=PARTS, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=64, dropout=0.0,
    bos_token_id=BOS, pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=BOS, forced_eos_token_id=None,
)  # fmt: skip
model = BartForConditionalGeneration(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
parts, labels = lists(960)
for epoch in range(3):
    for rows in torch.randperm(960).split(32):
        mask = (parts[rows] != PAD).long()
        loss = model(input_ids=parts[rows], attention_mask=mask, labels=labels[rows]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}")

model.eval()
test, _ = lists(4)
print(model.generate(input_ids=test, attention_mask=(test != PAD).long(), max_new_tokens=16))
