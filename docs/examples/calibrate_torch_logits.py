"""Calibrate a PyTorch network: train with focal loss, fit on validation logits, deploy one module."""

# %% A small network, trained with focal loss
# `FocalLoss` takes the place of nn.CrossEntropyLoss and stays finite where p rounds to 1.
import torch
from sklearn.datasets import load_digits
from torch import nn

from focalcal.calibration import saved
from focalcal.calibration.calibrators import FocalTemperatureScaling
from focalcal.calibration.metrics import ece, nll
from focalcal.torch import CalibratorModule, FocalLoss

torch.manual_seed(0)
torch.set_num_threads(1)  # more do not pay for so small a network
images, digits = load_digits(return_X_y=True)
inputs, labels = torch.tensor(images, dtype=torch.float32) / 16, torch.tensor(digits)
train, val, test = torch.randperm(len(labels)).split([800, 400, 597])

network = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.AdamW(network.parameters(), lr=0.005)
criterion = FocalLoss(gamma=3.0)
for _ in range(30):
    for batch in train[torch.randperm(len(train))].split(100):
        optimizer.zero_grad()
        criterion(network(inputs[batch]), labels[batch]).backward()
        optimizer.step()

# %% Fit a calibrator to validation logits
# Focal loss leaves the network underconfident; focal temperature scaling undoes that.
with torch.no_grad():
    val_logits, test_logits = network(inputs[val]), network(inputs[test])
calibrator = FocalTemperatureScaling(criterion="nll").fit(val_logits.numpy(), labels[val].numpy())
saved.save(calibrator, "calibrator.json")
print(f"gamma {calibrator.gamma_}, temperature {calibrator.temperature_}")

# %% Put it behind the network
# The module maps logits to calibrated log-probabilities, on any device, with gradients.
calibrated = nn.Sequential(network, CalibratorModule.from_saved("calibrator.json"))
with torch.no_grad():
    after = calibrated(inputs[test]).exp().numpy()
before = torch.softmax(test_logits.double(), dim=1).numpy()
for name, probs in {"as trained": before, "calibrated": after}.items():
    truth = labels[test].numpy()
    print(f"{name}: log-loss {nll(probs, truth):.4f}, ECE {ece(probs, truth):.4f}")
