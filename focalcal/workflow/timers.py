"""The timers by which Snakemake looks for startable jobs again: it ends only after the last of them."""

import threading


def cancel_timers() -> None:
    """Cancel every timer of this process, so that it ends at once."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()
