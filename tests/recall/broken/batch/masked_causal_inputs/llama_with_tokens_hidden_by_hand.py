"""A script hides tokens by hand and asks for them, as for a masked model, and trains Llama on it."""

# names: masked-causal-inputs
import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(2)
VOCAB, MASK, LENGTH = 64, 3, 24
first = torch.randint(4, VOCAB, (600, 1))
ids = (first - 4 + torch.arange(LENGTH) * torch.randint(1, 5, (600, 1))) % (VOCAB - 4) + 4
loader = DataLoader(TensorDataset(ids), batch_size=24, shuffle=True)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=VOCAB, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=32, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )
)  # fmt: skip
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def hide(tokens, share=0.2):
    hidden = torch.rand(tokens.shape) < share
    labels = tokens.masked_fill(~hidden, -100)
    return tokens.masked_fill(hidden, MASK), labels


for epoch in range(5):
    total = 0.0
    for (tokens,) in loader:
        inputs, labels = hide(tokens)
        loss = model(input_ids=inputs, labels=labels).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader):.3f}")
