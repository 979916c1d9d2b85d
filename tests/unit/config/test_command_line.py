import json

from focalcal.config.command_line import restore_types
from focalcal.config.validation import SCHEMA_FILE
from tests.project import ROOT

SCHEMA = json.loads((ROOT / SCHEMA_FILE).read_text("utf-8"))


def test_texts_become_what_they_mean_where_no_text_is_allowed():
    given = {
        "logits": {"mine": {"path": "a: b.npz", "dataset": "1", "seed": "1"}, "yours": {"seed": 3}},
        "runs": [{"seeds": ["1", "2"], "models": ["mlp"]}],
        "calibration": {"bins": "15", "gammas": ["-0.5", "1"], "temperatures": {"start": 0.5, "step": "0.1"}},
        "datasets": {"own": {"greyscale": "true", "image_size": "null", "test": "0.2", "folder": "2020-1"}},
        "cache": "7",
        "report": {"recommend": "false", "title": "12"},
    }
    assert restore_types(given, SCHEMA) == {
        "logits": {"mine": {"path": "a: b.npz", "dataset": "1", "seed": 1}, "yours": {"seed": 3}},
        "runs": [{"seeds": [1, 2], "models": ["mlp"]}],
        "calibration": {"bins": 15, "gammas": [-0.5, 1], "temperatures": {"start": 0.5, "step": 0.1}},
        "datasets": {"own": {"greyscale": True, "image_size": None, "test": 0.2, "folder": "2020-1"}},
        "cache": "7",
        "report": {"recommend": False, "title": "12"},
    }


def test_what_is_no_number_or_not_in_the_schema_is_left_to_the_checks():
    given = {"calibration": {"bins": "many", "bin": "1"}, "runs": "1", "unknown": {"a": ["1"]}, "plan": None}
    assert restore_types(given, SCHEMA) == {**given, "runs": 1}
