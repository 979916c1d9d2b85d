"""The file of a recommendation with made-up numbers."""


def made_recommendation(run, method="ts"):
    """Return what the rule `recommend` writes for a run: `ts` or `none` recommended, `fts` the next best."""
    test = {"brier": 0.3, "smece": 0.02, "accuracy": 0.8}
    candidates = [
        {
            "method": name,
            "parameters": number,
            "held_out_nll": 0.5 + 0.1 * number,
            "above_best": 0.1 * number,
            "above_best_error": 0.05,
            "share": 0.25,
            "boundaries": {},
            "test": test
            | {"nll": 0.6 - 0.1 * number, "ece": 0.05 - 0.01 * number}
            | {"nll_change": -0.1 * number, "low": -0.1 * number - 0.02, "high": -0.1 * number + 0.02},
        }
        for number, name in enumerate(("none", "ts", "fts"))
    ]
    bins = {"count": [0, 400, 600], "confidence": [None, 0.5, 0.9], "accuracy": [None, 0.45, 0.92]}
    return {
        "format": "focalcal calibrator",
        "version": 1,
        "calibrator": {
            "method": method,
            "criterion": "nll",
            "parameters": {"gamma": 0.0, "temperature": 1.5},
        },
        "recommendation": {
            "run": dict(run),
            "method": method,
            "share": 0.84,
            "best": "ts",
            "folds": 5,
            "resamples": 500,
            "samples": {"val": 3000, "test": 1000},
            "classes": 3,
            "absent_classes": [],
            "log_ratio": None,
            "split_gap": 0.0,
            "agreement": {
                split: {"accuracy": 0.8, "z": 20.0, "shift": 0, "shifted_accuracy": 0.8}
                for split in ("val", "test")
            },
            "repeated": 0,
            "candidates": candidates,
            "not_applicable": [{"method": "ts-m20", "reason": "it is not fitted by log-loss"}],
            "reliability": {"before": bins, "after": bins},
        },
    }
