"""What an installed package must do, without a clone: run in a clean environment before a release."""

import numpy as np

from focalcal import calibrator, load, recommend, save

rng = np.random.default_rng(0)
labels = rng.integers(0, 3, 600)
logits = 4 * (rng.normal(size=(600, 3)) + np.eye(3)[labels])
fitted = calibrator("ts").fit(logits, labels)
assert 1 < fitted.parameters["temperature"] < 10, fitted.parameters
save(fitted, "installed.json")
assert np.array_equal(load("installed.json").predict_proba(logits), fitted.predict_proba(logits))
found = recommend(logits, labels, methods=["none", "ts"])
assert found.method == "ts-prior", found
