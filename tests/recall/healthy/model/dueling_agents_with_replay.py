"""Deep Q-learning on a corridor: targets move, the loss does not fall, the return does."""

import random
from collections import deque

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
LENGTH = 8
policy = nn.Sequential(nn.Linear(LENGTH, 32), nn.ReLU(), nn.Linear(32, 2))
target = nn.Sequential(nn.Linear(LENGTH, 32), nn.ReLU(), nn.Linear(32, 2))
target.load_state_dict(policy.state_dict())
optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)
memory = deque(maxlen=2000)


def encode(place):
    return nn.functional.one_hot(torch.tensor(place), LENGTH).float()


def learn():
    batch = random.sample(memory, 32)
    s, a, r, n, done = zip(*batch)
    s, n = torch.stack([encode(p) for p in s]), torch.stack([encode(p) for p in n])
    a, r, done = torch.tensor(a), torch.tensor(r), torch.tensor(done, dtype=torch.float32)
    q = policy(s).gather(1, a[:, None]).squeeze(1)
    with torch.no_grad():
        goal = r + 0.95 * (1 - done) * target(n).max(1).values
    loss = nn.functional.smooth_l1_loss(q, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


for episode in range(80):
    place, loss = 0, 0.0
    for t in range(30):
        explore = random.random() < max(0.1, 1 - episode / 40)
        action = random.randrange(2) if explore else int(policy(encode(place)).argmax())
        after = max(0, min(LENGTH - 1, place + (1 if action else -1)))
        reward, done = (1.0, True) if after == LENGTH - 1 else (-0.02, False)
        memory.append((place, action, reward, after, done))
        place = after
        if len(memory) > 64:
            loss = learn()
        if done:
            break
    if episode % 5 == 0:
        target.load_state_dict(policy.state_dict())
    if episode % 20 == 19:
        print(f"episode {episode + 1} steps {t + 1} loss {loss:.4f}")
