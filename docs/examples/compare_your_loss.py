"""Compare your own loss with those of the catalogue: several seeds, before and after calibration."""

# %% Your loss: one value per sample
# Here the generalised cross-entropy (Zhang and Sabuncu 2018), (1 - p^q) / q.
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

from focalcal.calibration.calibrators import FocalTemperatureScaling, TemperatureScaling
from focalcal.calibration.metrics import nll
from focalcal.torch import make_loss

torch.set_num_threads(1)  # more do not pay for so small a network


def bounded(logits, labels, q=0.7):
    """Return the mean of (1 - p^q) / q."""
    log_p = torch.log_softmax(logits, dim=1).gather(1, labels[:, None])[:, 0]
    return (-torch.expm1(q * log_p) / q).mean()


# %% The competitors, by the ids of docs/names.md
criteria = {"bounded": bounded} | {name: make_loss(name) for name in ("ce", "focal-3", "flsd-53", "ls-0.05")}
images, digits = load_digits(return_X_y=True)
inputs, labels = torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(digits)


def logits_after_training(criterion, seed):
    """Return logits and labels of the validation and the test split."""
    torch.manual_seed(seed)
    train, *held_out = torch.randperm(len(labels)).split([600, 400, 797])
    network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.005)
    for _ in range(20):
        for batch in train.split(100):
            optimizer.zero_grad()
            criterion(network(inputs[batch]), labels[batch]).backward()
            optimizer.step()
    return [(network(inputs[rows]).detach().numpy(), labels[rows].numpy()) for rows in held_out]


# %% Test log-loss, mean over three seeds
# The same seed means the same split and the same first weights for every loss.
print(f"{'':10}{'as trained':>12}{'TS':>8}{'FTS':>8}")
for name, criterion in criteria.items():
    scores = []
    for seed in range(3):
        val, (logits, truth) = logits_after_training(criterion, seed)
        probs = [torch.softmax(torch.tensor(logits, dtype=torch.float64), dim=1).numpy()]
        probs += [
            kind().fit(*val).predict_proba(logits) for kind in (TemperatureScaling, FocalTemperatureScaling)
        ]
        scores.append([nll(each, truth) for each in probs])
    print("{:10}{:12.4f}{:8.4f}{:8.4f}".format(name, *np.mean(scores, axis=0)))

# For tables with intervals, more networks and datasets, put the loss into extensions/losses (docs/extend.md).
