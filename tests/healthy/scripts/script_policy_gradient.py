"""Reinforcement learning: a policy is called once a move, and learns once a game, from a loss written by hand.

A walk along a line of ten places, from the middle, with a reward at the right end (REINFORCE).

$ python tests/healthy/scripts/script_policy_gradient.py
"""

import torch
from torch import nn

PLACES, MOVES = 10, 20
GAMES = 150
DISCOUNT = 0.95


def build():
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(PLACES, 32), nn.Tanh(), nn.Linear(32, 2))
    return policy, None, None, torch.optim.Adam(policy.parameters(), lr=1e-2)


def play(policy):
    """Play a game; return the logarithms of the probabilities of what was done, and the moves it took."""
    place, chosen = PLACES // 2, []
    for move in range(MOVES):
        state = torch.eye(PLACES)[place].unsqueeze(0)
        choices = torch.distributions.Categorical(logits=policy(state))
        action = choices.sample()
        chosen.append(choices.log_prob(action))
        place = min(max(place + 2 * action.item() - 1, 0), PLACES - 1)
        if place == PLACES - 1:
            return chosen, move + 1
    return chosen, 2 * MOVES


def train(policy, loader, loss_fn, optimizer):
    @torch.no_grad()
    def moves():
        """Return how many moves a game takes, on average."""
        return sum(play(policy)[1] for _ in range(30)) / 30

    before = moves()
    for _ in range(GAMES):
        chosen, taken = play(policy)
        reward = 1.0 if taken <= MOVES else -1.0
        returns = reward * DISCOUNT ** torch.arange(len(chosen)).flip(0)
        optimizer.zero_grad()
        (-torch.cat(chosen) * returns).sum().backward()
        optimizer.step()
    return {"loss_before": before, "loss_after": moves()}


if __name__ == "__main__":
    print(train(*build()))
