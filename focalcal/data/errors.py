"""Failures of one source that leave the other sources to try."""

PLUMBING = True


class SourceError(Exception):
    """One source cannot serve a file: it is missing, wrong, refused or unavailable on this machine."""


class TooSlowError(SourceError):
    """A source is so slow that all others should be tried first."""


class ArchiveError(SourceError):
    """An archive is damaged or contains something that must not be extracted."""
