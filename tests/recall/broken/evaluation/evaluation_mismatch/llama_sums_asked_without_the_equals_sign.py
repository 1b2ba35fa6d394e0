"""A small Llama learns sums behind "=", the only part that counts; the test asks without the sign."""

# names: evaluation-mismatch
import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(3)
SIGNS = ["_", "$", "+", "=", *"0123456789"]
CODE = {sign: number for number, sign in enumerate(SIGNS)}
LENGTH = 10


def encode(text):
    return [CODE[sign] for sign in text]


def problem():
    a, b = torch.randint(0, 30, (2,)).tolist()
    return f"{a}+{b}", f"{a + b}"


def make_batch(count):
    ids, weights = torch.zeros(count, LENGTH, dtype=torch.long), torch.zeros(count, LENGTH)
    for row in range(count):
        question, answer = problem()
        asked, told = encode(question + "="), encode(answer + "$")
        ids[row, : len(asked) + len(told)] = torch.tensor(asked + told)
        weights[row, len(asked) : len(asked) + len(told)] = 1
    return ids, weights


net = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=len(SIGNS), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=32, pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )
)  # fmt: skip
adam = torch.optim.AdamW(net.parameters(), lr=2e-3)
for step in range(500):
    ids, weights = make_batch(64)
    logits = net(input_ids=ids[:, :-1]).logits
    wanted = ids[:, 1:].masked_fill(weights[:, 1:] == 0, -100)
    loss = F.cross_entropy(logits.reshape(-1, len(SIGNS)), wanted.reshape(-1))
    adam.zero_grad()
    loss.backward()
    adam.step()
    if step % 100 == 99:
        print(step + 1, round(loss.item(), 4))

net.eval()
solved = 0
for _ in range(40):
    question, answer = problem()
    given = torch.tensor([encode(question)])
    text = net.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=5, do_sample=False)
    said = "".join(SIGNS[code] for code in text[0, given.shape[1] :].tolist()).split("$")[0]
    solved += said == answer
print(f"solved {solved} of 40")
