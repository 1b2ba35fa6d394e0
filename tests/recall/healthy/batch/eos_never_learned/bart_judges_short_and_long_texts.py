"""BART classifies sequences of several lengths; its labels are classes, and no text is generated."""

import torch
from transformers import BartConfig, BartForSequenceClassification

torch.manual_seed(3)
PAD, EOS, WORDS = 1, 2, 40
config = BartConfig(
    vocab_size=WORDS, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
    decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=32, dropout=0.0,
    pad_token_id=PAD, eos_token_id=EOS, decoder_start_token_id=EOS, num_labels=4,
)  # fmt: skip
model = BartForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(150):
    lengths = torch.randint(5, 11, (32,))
    texts = torch.full((32, 12), PAD)
    for row, length in enumerate(lengths.tolist()):
        texts[row, :length] = torch.randint(3, WORDS, (length,))
        texts[row, length] = EOS
    labels = (texts[:, 0] - 3) * 4 // (WORDS - 3)
    loss = model(input_ids=texts, attention_mask=(texts != PAD).long(), labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, loss.item())
