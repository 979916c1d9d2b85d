"""Failures of one source that leave the other sources to try."""

from focalcal.common.messages import printable

PLUMBING = True


class SourceError(Exception):
    """One source cannot serve a file: it is missing, wrong, refused or unavailable on this machine.

    What a server said is part of the message, so that this keeps only what can be printed.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class TooSlowError(SourceError):
    """A source is so slow that all others should be tried first."""


class ArchiveError(SourceError):
    """An archive is damaged or contains something that must not be extracted."""
