"""Deep Q-learning; chosen values and targets are columns."""

import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "reward", "next_state", "done"))
random.seed(0)
torch.manual_seed(0)


class Corridor:
    """Walk right to the goal; the state is the place, scaled, and a constant."""

    def __init__(self, length=8):
        self.length = length

    def reset(self):
        self.place = random.randint(0, self.length - 2)
        self.t = 0
        return self._state()

    def _state(self):
        return torch.tensor([self.place / self.length, 1.0])

    def step(self, action):
        self.place = max(0, self.place + (1 if action == 1 else -1))
        self.t += 1
        won = self.place >= self.length - 1
        return self._state(), 1.0 if won else -0.05, won or self.t >= 30


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, n):
        return Transition(*zip(*random.sample(self.memory, n)))

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(2, 32)
        self.layer2 = nn.Linear(32, 32)
        self.layer3 = nn.Linear(32, 2)

    def forward(self, x):
        return self.layer3(F.relu(self.layer2(F.relu(self.layer1(x)))))


policy_net, target_net = DQN(), DQN()
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.Adam(policy_net.parameters(), lr=1e-3)
memory = ReplayMemory(5000)
env = Corridor()
GAMMA, BATCH = 0.95, 32


def optimize_model():
    if len(memory) < BATCH:
        return None
    batch = memory.sample(BATCH)
    state_batch, next_batch = torch.stack(batch.state), torch.stack(batch.next_state)
    action_batch = torch.tensor(batch.action).unsqueeze(1)
    reward_batch = torch.tensor(batch.reward)
    done_batch = torch.tensor(batch.done, dtype=torch.float32)
    state_action_values = policy_net(state_batch).gather(1, action_batch)
    with torch.no_grad():
        next_state_values = target_net(next_batch).max(1).values
    expected = reward_batch + GAMMA * next_state_values * (1 - done_batch)
    loss = ((state_action_values - expected.unsqueeze(1)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


steps = 0
for episode in range(80):
    state, total, done, loss = env.reset(), 0.0, False, None
    while not done:
        eps = max(0.05, 0.9 - steps / 800)
        action = random.randrange(2) if random.random() < eps else policy_net(state.unsqueeze(0)).argmax(1).item()
        next_state, reward, done = env.step(action)
        memory.push(state, action, reward, next_state, done)
        state, total, steps = next_state, total + reward, steps + 1
        loss = optimize_model()
    if target_net and episode % 4 == 0:
        target_net.load_state_dict(policy_net.state_dict())
    if episode % 10 == 0:
        print("episode", episode, f"return {total:.2f}", "loss", loss)
