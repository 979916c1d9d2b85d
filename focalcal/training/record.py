"""The record of a training run, `run.json`."""

from typing import Any

import torch

from focalcal.training.loop import TrainingResult

FINAL_METRICS = ("train_loss", "train_error", "val_loss", "val_nll", "val_error", "val_ece", "val_adaece")


def training_record(result: TrainingResult, device: torch.device) -> dict[str, Any]:
    """Return the results of a finished run as JSON values; the caller adds spec, data and provenance."""
    last = result.history[-1] if result.history else {}
    speeds = sorted(row["images_per_second"] for row in result.history)
    return {
        "status": result.status,
        "message": result.message,
        "device": device.type,
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "threads": torch.get_num_threads(),
        "epochs": len(result.history),
        "parameters": sum(parameter.numel() for parameter in result.model.parameters()),
        "images_per_second": speeds[len(speeds) // 2] if speeds else None,
        "wall_seconds": round(result.seconds, 3),
        "final": {name: last.get(name) for name in FINAL_METRICS},
        "snapshots": result.snapshots,
    }
