import logging

import pytest

from focalcal.training import progress
from focalcal.training.progress import EpochProgress


def row(epoch):
    return {
        "epoch": epoch,
        "learning_rate": 0.1,
        "images_per_second": 1234.5,
        "train_loss": 0.5,
        "val_nll": None,
    }


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_log_lines_have_metrics_and_time_left(clock, caplog):
    caplog.set_level(logging.INFO)
    report = EpochProgress()
    clock[0] += 50
    report(row(1), 100)
    report(row(100) | {"val_error": 0.25, "val_nll": 0.75, "val_ece": 0.0625}, 100)
    assert caplog.messages == [
        "epoch 1/100, 1:22:30 left, loss 0.5000, learning rate 0.1, 1234 samples/s",
        (
            "epoch 100/100, 0:00:00 left, loss 0.5000, validation accuracy 75.00 %, NLL 0.7500, ECE 6.25 %, "
            "learning rate 0.1, 1234 samples/s"
        ),
    ]


def test_short_epochs_share_a_line_but_the_last_is_shown(clock, caplog):
    caplog.set_level(logging.INFO)
    report = EpochProgress()
    for epoch in range(1, 31):
        clock[0] += 0.125
        report(row(epoch), 30)
    assert [message.split(" ")[1] for message in caplog.messages] == [
        "1/30,",
        "9/30,",
        "17/30,",
        "25/30,",
        "30/30,",
    ]


def test_a_resumed_run_counts_only_its_own_time(clock, caplog):
    caplog.set_level(logging.INFO)
    report = EpochProgress(first_epoch=90)
    clock[0] += 10
    report(row(91), 100)
    assert caplog.messages[0].startswith("epoch 91/100, 0:01:30 left, ")
