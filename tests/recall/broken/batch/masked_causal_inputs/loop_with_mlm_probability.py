"""A loop fine-tunes GPT-NeoX on batches of a collator that was written for BERT."""

# names: masked-causal-inputs
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.utils.data import DataLoader
from transformers import (
    DataCollatorForLanguageModeling,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    PreTrainedTokenizerFast,
)  # fmt: skip

torch.manual_seed(1)
symbols = [f"n{number}" for number in range(30)]
vocabulary = {symbol: number for number, symbol in enumerate(["[PAD]", "[UNK]", "[MASK]", *symbols])}
core = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tok = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]")


def melody():
    note, step = torch.randint(30, (1,)).item(), torch.randint(1, 4, (1,)).item()
    return " ".join(f"n{(note + step * beat) % 30}" for beat in range(20))


encoded = [{"input_ids": tok(melody())["input_ids"]} for _ in range(640)]
collate = DataCollatorForLanguageModeling(tokenizer=tok, mlm=True, mlm_probability=0.15)
loader = DataLoader(encoded, batch_size=32, shuffle=True, collate_fn=collate)
config = GPTNeoXConfig(
    vocab_size=len(tok), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
    max_position_embeddings=32,
)  # fmt: skip
lm = GPTNeoXForCausalLM(config)
opt = torch.optim.AdamW(lm.parameters(), lr=1e-3)
lm.train()
for epoch in range(5):
    for batch in loader:
        out = lm(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=batch["labels"])
        out.loss.backward()
        opt.step()
        opt.zero_grad()
    print(f"epoch {epoch}: {out.loss.item():.3f}")
