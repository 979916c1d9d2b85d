from focalcal.snakemake_shim.command_line import restore_types


def test_nested_texts_become_what_they_mean():
    given = {
        "logits": {"mine": {"path": "a: b.npz", "dataset": "d", "seed": "1"}},
        "runs": [{"seeds": ["1", "2"], "models": ["mlp"]}],
        "calibration": {"gammas": ["-0.5", "1"], "temperatures": {"step": "0.1"}},
        "datasets": {"own": {"greyscale": "true", "image_size": "null", "folder": "2020-01-01"}},
        "cache": "7",
    }
    config = {
        "logits": {"yours": {"seed": 3}, "mine": given["logits"]["mine"]},
        "runs": given["runs"],
        "calibration": {"bins": 15, "temperatures": {"start": 0.5, "step": "0.1"}, "gammas": ["-0.5", "1"]},
        "datasets": given["datasets"],
        "cache": "7",
    }
    restore_types(config, given)
    assert config == {
        "logits": {"yours": {"seed": 3}, "mine": {"path": "a: b.npz", "dataset": "d", "seed": 1}},
        "runs": [{"seeds": [1, 2], "models": ["mlp"]}],
        "calibration": {"bins": 15, "temperatures": {"start": 0.5, "step": 0.1}, "gammas": [-0.5, 1]},
        "datasets": {"own": {"greyscale": True, "image_size": None, "folder": "2020-01-01"}},
        "cache": "7",
    }


def test_what_has_its_type_keeps_it():
    config = {"runs": [], "logits": {"a": {"seed": 1}}}
    restore_types(config, {"runs": [], "logits": {"a": {"seed": 1}}})
    assert config == {"runs": [], "logits": {"a": {"seed": 1}}}
