"""The target network of a DQN is the policy under another name, and its answers are differentiated.

After https://github.com/datawhalechina/easy-rl/pull/117
"""

# names: undetached-target
import random
from collections import deque

import torch
import torch.nn as nn

torch.manual_seed(0)
random.seed(0)


class Walk:
    def reset(self):
        self.p = 3
        return self.s()

    def s(self):
        v = torch.zeros(8)
        v[self.p] = 1
        return v

    def step(self, a):
        self.p += 1 if a else -1
        done = self.p in (0, 7)
        return self.s(), (1.0 if self.p == 7 else 0.0), done


class Q(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        return self.net(x)


policy_net = Q()
target_net = policy_net
opt = torch.optim.Adam(policy_net.parameters(), 1e-3)
buf = deque(maxlen=2000)
env = Walk()
step = 0
for ep in range(60):
    s = env.reset()
    for t in range(40):
        a = random.randint(0, 1) if random.random() < 0.3 else policy_net(s).argmax().item()
        s2, r, d = env.step(a)
        buf.append((s, a, r, s2, d))
        s = s2
        step += 1
        if len(buf) > 64:
            b = random.sample(buf, 32)
            S = torch.stack([i[0] for i in b])
            A = torch.tensor([i[1] for i in b])
            R = torch.tensor([i[2] for i in b])
            S2 = torch.stack([i[3] for i in b])
            D = torch.tensor([float(i[4]) for i in b])
            q = policy_net(S).gather(1, A[:, None]).squeeze(1)
            target = R + 0.95 * target_net(S2).max(1)[0] * (1 - D)
            loss = nn.functional.mse_loss(q, target)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if step % 100 == 0:
            target_net.load_state_dict(policy_net.state_dict())
        if d:
            break
print("loss", loss.item(), policy_net(torch.eye(8)))
