import pytest

from focalcal.common.errors import UserError
from focalcal.common.io import write_json
from focalcal.config.grid import build_grid
from focalcal.training.catalogue import LOSSES, parse_loss
from focalcal.training.smoke import smoke_faults, smoke_table
from tests.project import ROOT, merged_config
from workflow_scripts import smoke


def record(device="cuda", status="ok", seed=1):
    """Return the run.json of a run of the overlay, as it is written."""
    grid = build_grid(merged_config("smoke"), ROOT)
    return {
        "spec": grid.training_spec(next(run for run in grid if run.seed == seed)),
        "status": status,
        "message": None if status == "ok" else "the loss is NaN",
        "device": device,
        "device_name": "NVIDIA A100" if device == "cuda" else None,
        "images_per_second": 12345.6,
        "final": {"train_loss": 1.5},
    }


def test_each_run_has_a_line_with_what_it_used():
    records = {f"ce/seed{seed}": record(seed=seed) for seed in (1, 2, 3)}
    records["on a CPU"] = record("cpu", seed=3)
    lines = smoke_table(records).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["ce/seed1", "NVIDIA", "A100", "fp32", "no", "12,346", "1.5000"],
        ["ce/seed2", "NVIDIA", "A100", "bf16", "no", "12,346", "1.5000"],
        ["ce/seed3", "NVIDIA", "A100", "bf16", "yes", "12,346", "1.5000"],
        ["on", "a", "CPU", "cpu", "fp32", "no", "12,346", "1.5000"],
    ]


def test_failed_runs_and_runs_on_a_cpu_are_faults():
    assert smoke_faults({"ce/seed1": record()}) == []
    first, second = smoke_faults({"a": record(status="diverged"), "b": record("cpu")})
    assert first == "a diverged: the loss is NaN"
    assert second.startswith("1 of 2 runs were trained on a CPU, such as b, so neither bf16 nor the compiler")


def test_the_target_fails_without_a_gpu(tmp_path, capsys):
    paths = []
    for seed, device in ((1, "cuda"), (2, "cpu")):
        paths.append(tmp_path / f"ce/seed{seed}/run.json")
        write_json(paths[-1], record(device))
    smoke.main(["--records", str(paths[0])])
    assert capsys.readouterr().out.endswith("All 1 runs were trained on the GPU.\n")
    with pytest.raises(UserError, match="1 of 2 runs were trained on a CPU, such as ce/seed2"):
        smoke.main(["--records", *map(str, paths)])


def test_the_overlay_has_every_family_of_losses_in_both_precisions():
    grid = build_grid(merged_config("smoke"), ROOT)
    for seed, precision in ((1, "fp32"), (2, "bf16")):
        runs = [run for run in grid if run.seed == seed]
        assert {parse_loss(run.loss).kind for run in runs} == set(LOSSES)
        assert {grid.recipe(run).precision for run in runs} == {precision}
    assert {grid.recipe(run).compile for run in grid if run.seed == 3} == {True}
