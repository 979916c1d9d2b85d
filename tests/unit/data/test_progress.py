import functools
import logging
import sys

import pytest
from tqdm import tqdm

from focalcal.data import progress


def test_a_log_gets_a_line_every_fifteen_seconds(monkeypatch, caplog, capsys):
    moments = iter([0.0, 5.0, 14.9, 15.0, 20.0, 29.9, 31.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(moments))
    with (
        caplog.at_level(logging.INFO),
        progress.transfer_progress("big.tgz", 1_000_000, 8_000_000) as show,
    ):
        for _ in range(6):
            show(1_000_000)
    assert caplog.messages == ["big.tgz: 4.0 of 8.0 MB", "big.tgz: 7.0 of 8.0 MB"]
    assert capsys.readouterr().err == ""


def show_bars(monkeypatch):
    """Pretend that the errors go to a terminal, on which a bar is drawn at once."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "tqdm", functools.partial(progress.tqdm, mininterval=0))


def test_a_terminal_gets_a_bar(monkeypatch, caplog, capsys):
    show_bars(monkeypatch)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    with caplog.at_level(logging.INFO), progress.transfer_progress("f", 0, 1000) as show:
        show(1000)
        assert "100%" in capsys.readouterr().err
    assert caplog.messages == []


def test_the_bar_is_closed_when_the_transfer_fails(monkeypatch):
    show_bars(monkeypatch)
    with pytest.raises(RuntimeError), progress.transfer_progress("f", 0, 10) as show:  # noqa: PT012
        show(1)
        assert len(tqdm._instances) == 1
        raise RuntimeError
    assert len(tqdm._instances) == 0
