"""scikit-learn's conventions: calibrators keep them as far as logits allow, the classifier keeps all."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from focalcal.calibration.calibrators import FocalTemperatureScaling, TemperatureScaling, calibrator_class
from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.classifier import CalibratedClassifier, logits_of_scores
from tests.unit.calibration.logit_sets import like_a_network

LOGITS, LABELS = like_a_network(120, 4, seed=5)
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
OWN_MESSAGE = "the message is this package's own, in one line"
K_LABELS = "it has labels of more classes than columns; logits have one column per class"
CANNOT_HOLD = {
    "check_fit_score_takes_y": "the arguments are called logits and labels",
    "check_n_features_in_after_fitting": "a temperature applies to logits of any number of classes",
    "check_estimators_overwrite_params": K_LABELS,
    "check_estimators_fit_returns_self": K_LABELS,
    "check_readonly_memmap_input": K_LABELS,
    "check_dtype_object": "numbers in arrays of objects are refused",
    "check_fit2d_1feature": "one column is no set of logits; " + OWN_MESSAGE,
    "check_complex_data": OWN_MESSAGE,
    "check_estimators_empty_data_messages": OWN_MESSAGE,
    "check_estimators_nan_inf": OWN_MESSAGE,
    "check_estimator_sparse_tag": OWN_MESSAGE,
    "check_estimator_sparse_array": OWN_MESSAGE,
    "check_estimator_sparse_matrix": OWN_MESSAGE,
    "check_fit2d_predict1d": OWN_MESSAGE,
    "check_requires_y_none": OWN_MESSAGE,
}


def failures(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    return {result["check_name"] for result in results if result["status"] == "failed"}


@pytest.mark.filterwarnings("ignore")
def test_a_calibrator_passes_every_check_that_can_hold_for_logits():
    assert failures(TemperatureScaling(temperatures=[0.5, 1.0, 2.0])) == set(CANNOT_HOLD)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [RidgeClassifier(), GaussianNB()])
def test_the_calibrated_classifier_passes_every_check(estimator):
    calibrator = TemperatureScaling(temperatures=[0.5, 1.0, 2.0])
    assert failures(CalibratedClassifier(estimator, calibrator, cv=3)) == set()


@pytest.mark.parametrize("method", METHODS)
def test_every_calibrator_can_be_cloned_changed_and_pickled(method):
    kind = calibrator_class(method)
    needed = {"training_gamma": 2.0} if METHODS[method].needs_training_gamma else {}
    original = kind(bins=7, **needed)
    copy = clone(original)
    assert type(copy) is kind
    assert copy.get_params() == original.get_params()
    assert copy.set_params(bins=9).bins == 9
    assert original.bins == 7
    classes = min(METHODS[method].most_classes or 4, 4)
    logits = LOGITS[:, :classes]
    assert original.fit(logits, LABELS % classes) is original
    assert original.classes_.tolist() == list(range(classes))
    assert original.n_features_in_ == classes
    again = pickle.loads(pickle.dumps(original))  # noqa: S301
    assert np.array_equal(again.predict_log_proba(logits), original.predict_log_proba(logits))
    with pytest.raises(NotFittedError, match="is not fitted; call fit"):
        clone(original).predict_proba(logits)


def test_the_calibrator_is_fitted_to_logits_of_unseen_samples():
    model = CalibratedClassifier(GaussianNB(), "ts").fit(X, NAMES)
    unseen = np.log(np.maximum(cross_val_predict(GaussianNB(), X, Y, cv=5, method="predict_proba"), 1.2e-38))
    expected = TemperatureScaling().fit(unseen, Y)
    assert model.calibrator_.temperature_ == pytest.approx(expected.temperature_, rel=1e-6)
    trained = np.log(np.maximum(GaussianNB().fit(X, Y).predict_proba(X), np.finfo(np.float32).tiny))
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(trained), atol=1e-6)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert np.mean(model.predict(X) == NAMES) > 0.9


def test_two_classes_have_the_logits_0_and_the_decision():
    features, labels = make_classification(200, random_state=0)
    trained = LogisticRegression().fit(features[:100], labels[:100])
    model = CalibratedClassifier(trained, FocalTemperatureScaling(gammas=[0.0], temperatures=[1.0]), "prefit")
    model.fit(features[100:], labels[100:])
    assert model.estimator_ is trained
    np.testing.assert_allclose(
        model.predict_proba(features), trained.predict_proba(features), rtol=0, atol=1e-12
    )


def test_a_search_over_calibrators_works():
    found = GridSearchCV(
        CalibratedClassifier(GaussianNB()), {"calibrator": ["none", "ts"]}, scoring="neg_log_loss", cv=3
    ).fit(X, Y)
    assert found.best_params_ == {"calibrator": "ts"}


@pytest.mark.parametrize(
    ("model", "labels", "message"),
    [
        (
            CalibratedClassifier(GaussianNB(), "plat"),
            Y,
            "calibrator is 'plat'; .*did you mean 'platt'",
        ),
        (CalibratedClassifier(GaussianNB(), cv=60), Y, r"the class .* has 50 samples; expected 60 or more"),
        (CalibratedClassifier(GaussianNB()), Y * 0, r"y has 1 class, \[0\]; expected 2 or more"),
        (CalibratedClassifier(GaussianNB(), cv="prefit"), Y, "This GaussianNB instance is not fitted yet"),
        (
            CalibratedClassifier(GaussianNB().fit(X, Y), cv="prefit"),
            Y + 1,
            r"y has the label .*3.*; expected one of \[0, 1, 2\]",
        ),
    ],
)
def test_mistakes_are_named(model, labels, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, labels)


def test_decisions_between_pairs_of_classes_are_refused():
    features, labels = make_classification(120, n_classes=4, n_informative=4, random_state=0)
    machine = SVC(decision_function_shape="ovo").fit(features, labels)
    with pytest.raises(ValueError, match="decision_function has 6 columns for 4 classes"):
        CalibratedClassifier(machine, "ts", "prefit").fit(features, labels)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize(
    "classifier",
    [
        RandomForestClassifier(30, random_state=0),
        KNeighborsClassifier(10),
        DecisionTreeClassifier(random_state=0),
        GaussianNB(),
    ],
)
def test_by_default_no_classifier_gets_worse_by_more_than_noise(classifier, load):
    features, labels = load(return_X_y=True)
    train, test, of_train, of_test = train_test_split(
        features, labels, test_size=0.5, random_state=0, stratify=labels
    )
    own = clone(classifier).fit(train, of_train)
    model = CalibratedClassifier(classifier).fit(train, of_train)
    before, after = (
        -np.log(np.maximum(each.predict_proba(test)[np.arange(len(of_test)), of_test], 2.2e-16))
        for each in (own, model)
    )
    change = after - before
    assert change.mean() <= change.std(ddof=1) / len(change) ** 0.5
    if model.calibrator_.to_record()["method"] == "none":
        np.testing.assert_array_equal(model.predict_proba(test), own.predict_proba(test))


def test_a_0_counts_as_half_the_smallest_other_probability():
    forest = RandomForestClassifier(20, max_depth=2, random_state=0)
    model = CalibratedClassifier(forest, "ts").fit(X, Y)
    unseen = cross_val_predict(forest, X, Y, cv=5, method="predict_proba")
    assert (unseen == 0).any()
    assert model.zero_ == unseen[unseen > 0].min() / 2
    expected = TemperatureScaling().fit(np.log(np.maximum(unseen, model.zero_)), Y)
    assert model.calibrator_.temperature_ == pytest.approx(expected.temperature_, rel=1e-6)


def test_probabilities_of_0_have_finite_logits():
    forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
    logits = logits_of_scores(forest.predict_proba(X), "predict_proba", 3)
    assert logits.min() == pytest.approx(-87.33654, abs=1e-5)
