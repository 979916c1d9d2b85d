"""What short training runs show about a machine: where each ran, in which precision, whether it succeeded."""

from collections.abc import Mapping
from typing import Any

from focalcal.common.text_table import aligned_lines
from focalcal.training.recipes import recipe_from_dict

COLUMNS = ("run", "device", "precision", "compiled", "samples/s", "loss")


def _cells_of_run(name: str, record: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of one run, given its run.json; bf16 and the compiler are used on a GPU only."""
    recipe, on_gpu = recipe_from_dict(record["spec"]["recipe"]), record["device"] == "cuda"
    loss, speed = record["final"]["train_loss"], record["images_per_second"]
    return (
        name,
        record["device_name"] or record["device"],
        recipe.precision if on_gpu else "fp32",
        "yes" if on_gpu and recipe.compile else "no",
        "" if speed is None else f"{speed:,.0f}",
        "" if loss is None else f"{loss:.4f}",
    )


def smoke_table(records: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one line per run under a header."""
    rows = [COLUMNS, *(_cells_of_run(name, record) for name, record in records.items())]
    return "\n".join(aligned_lines(rows, left=len(COLUMNS))) + "\n"


def smoke_faults(records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what is not as it should be on a machine with a GPU, one line each."""
    faults = [
        f"{name} {record['status']}: {record['message']}"
        for name, record in records.items()
        if record["status"] != "ok"
    ]
    on_cpu = [name for name, record in records.items() if record["device"] != "cuda"]
    if on_cpu:
        faults.append(
            f"{len(on_cpu)} of {len(records)} runs were trained on a CPU, such as {on_cpu[0]}, so "
            f"neither bf16 nor the compiler was tried; check that torch.cuda.is_available() is True in a job"
        )
    return faults
