"""An actor and a critic on one body: several games side by side that all begin alike, and a loss of many parts.

$ python tests/healthy/scripts/script_actor_critic.py
"""

import torch
import torch.nn.functional as F
from torch import nn

PLACES, GAMES, MOVES = 8, 16, 12
ROUNDS = 120
DISCOUNT = 0.95


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(PLACES, 32), nn.Tanh())
        self.actor, self.critic = nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, states):
        hidden = self.body(states)
        return self.actor(hidden), self.critic(hidden).squeeze(1)


def build():
    torch.manual_seed(0)
    model = ActorCritic()
    return model, None, None, torch.optim.Adam(model.parameters(), lr=1e-2)


def play(model):
    """Play games side by side, all from the middle; the right end pays 1 a move. Return lists of (GAMES,)."""
    places = torch.full((GAMES,), PLACES // 2)
    chosen, values, rewards = [], [], []
    for _ in range(MOVES):
        scores, value = model(torch.eye(PLACES)[places])
        choices = torch.distributions.Categorical(logits=scores)
        actions = choices.sample()
        places = (places + 2 * actions - 1).clamp(0, PLACES - 1)
        chosen.append(choices.log_prob(actions))
        values.append(value)
        rewards.append((places == PLACES - 1).float())
    return chosen, values, rewards


def train(model, loader, loss_fn, optimizer):
    @torch.no_grad()
    def missed():
        """Return the share of the possible reward that a game does not get."""
        return 1 - torch.stack(play(model)[2]).sum(0).mean().item() / (MOVES - PLACES // 2 + 2)

    before = missed()
    for _ in range(ROUNDS):
        chosen, values, rewards = play(model)
        returns, total = [], torch.zeros(GAMES)
        for reward in reversed(rewards):
            total = reward + DISCOUNT * total
            returns.insert(0, total)
        parts = [
            -(log * (right - value.detach())).mean() + F.smooth_l1_loss(value, right)
            for log, value, right in zip(chosen, values, returns, strict=True)
        ]
        optimizer.zero_grad()
        torch.stack(parts).sum().backward()
        optimizer.step()
    return {"loss_before": before, "loss_after": missed()}


if __name__ == "__main__":
    print(train(*build()))
