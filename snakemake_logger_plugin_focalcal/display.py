"""Where the progress of jobs is shown: a live screen on a terminal, sparse lines elsewhere."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from snakemake_logger_plugin_focalcal.jobs import Jobs

if TYPE_CHECKING:
    from rich.console import Group

STEPS = 10
"""Elsewhere than on a terminal, a line appears whenever another tenth of the jobs is done,"""
HEARTBEAT_SECONDS = 600.0
"""and after each span of this length, with what the jobs that run say last."""
HEARTBEAT_JOBS = 4
BAR_WIDTH = 30


class Lines:
    """Sparse plain lines, for a log or a pipe; their number does not grow with that of the jobs."""

    def __init__(self, jobs: Jobs, write: Callable[[str], None]) -> None:
        self._jobs, self.write = jobs, write
        self._step = 0
        self._stopped = threading.Event()
        threading.Thread(target=self._beat, daemon=True).start()

    def update(self) -> None:
        """Write a line if another tenth of the jobs is done."""
        step = STEPS * self._jobs.done // max(self._jobs.total, 1)
        if step > self._step:
            self._step = step
            self.write(f"{time.strftime('%H:%M:%S')} {self._jobs.summary()}")

    def stop(self) -> None:
        """Write nothing more."""
        self._stopped.set()

    def _beat(self) -> None:
        while not self._stopped.wait(HEARTBEAT_SECONDS):
            shown = list(self._jobs.running.values())[:HEARTBEAT_JOBS]
            self.write(f"{time.strftime('%H:%M:%S')} {self._jobs.summary()}")
            for job in shown:
                self.write(f"  {job.text}")


class Screen:
    """A few lines at the bottom of a terminal, redrawn in place: the whole, then each running job."""

    def __init__(self, jobs: Jobs) -> None:
        # Imported here: most of what Snakemake is asked for shows no screen.
        from rich.console import Console  # noqa: PLC0415
        from rich.live import Live  # noqa: PLC0415

        self._jobs = jobs
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._live = Live(
            get_renderable=self._screen, console=self._console, refresh_per_second=2, transient=True
        )
        self._live.start()

    def write(self, text: str) -> None:
        """Write a text above the live lines."""
        self._console.print(text, soft_wrap=True)

    def update(self) -> None:
        """Draw nothing: the screen redraws itself."""

    def stop(self) -> None:
        """Replace the live lines by what was done in all."""
        self._live.stop()
        self.write(self._jobs.summary())

    def _screen(self) -> "Group":
        from rich.console import Group  # noqa: PLC0415
        from rich.progress_bar import ProgressBar  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        running = list(self._jobs.running.values())
        rows = max(1, self._console.height - 4)
        lines = [job.text for job in running[:rows]]
        if len(running) > rows:
            lines.append(f"and {len(running) - rows} more")
        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=self._jobs.total, completed=self._jobs.done, width=BAR_WIDTH)
        head.add_row(bar, Text(self._jobs.summary(), no_wrap=True, overflow="ellipsis"))
        return Group(
            head,
            *(Text(f"  {line}", no_wrap=True, overflow="ellipsis") for line in lines),
        )
