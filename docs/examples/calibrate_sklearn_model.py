"""Calibrate a scikit-learn model: one line around the classifier, then compare log-losses and save."""

# %% A classifier whose probabilities nobody should trust
# Naive Bayes counts correlated pixels as independent evidence, so it is sure of everything.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from focalcal import CalibratedClassifier, load, save
from focalcal.calibration.classifier import logits_of_scores
from focalcal.calibration.metrics import accuracy, ece

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
plain = GaussianNB(var_smoothing=1e-3).fit(X_train, y_train)

# %% The same classifier with a calibrator behind it
# Five-fold cross-validation gives logits of samples that the classifier has not seen; the calibrator is
# fitted to those. "recommended" is the default; any method of docs/names.md works, and "ts" and "fts" never
# change which class is predicted.
models = {"as trained": plain}
for method in ("recommended", "ts", "fts", "svs"):
    models[method] = CalibratedClassifier(plain, calibrator=method, cv=5).fit(X_train, y_train)

# %% Was it worth it?
# The log-loss is a proper score, so it comes first. Lower is better for log-loss and ECE.
print(f"{'':12}{'log-loss':>10}{'ECE':>8}{'accuracy':>10}")
for name, model in models.items():
    probs = model.predict_proba(X_test)
    print(f"{name:12}{log_loss(y_test, probs):10.3f}{ece(probs, y_test):8.3f}{accuracy(probs, y_test):10.3f}")

# %% Keep the calibrator
# The file is readable JSON and restores every bit. It is applied to logits, here the logarithms of the
# probabilities of the classifier.
model = models["svs"]
save(model.calibrator_, "calibrator.json")
logits = logits_of_scores(plain.predict_proba(X_test), "predict_proba", len(plain.classes_), model.zero_)
again = load("calibrator.json").predict_proba(logits)
print("same after loading:", np.array_equal(again, model.predict_proba(X_test)))
