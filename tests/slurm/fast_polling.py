"""Snakemake that polls the queue every second; users get longer, growing intervals."""

import sys

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

RemoteExecutor.next_seconds_between_status_checks = property(lambda _self: 1, lambda _self, _value: None)

if __name__ == "__main__":
    sys.exit(main())
