"""What can go wrong with one source while another may still serve."""


class SourceError(Exception):
    """One source cannot serve a file: it is missing, wrong, refused, or not to be had here."""


class TooSlowError(SourceError):
    """A source serves, but so slowly that every other one deserves a try first."""


class ArchiveError(SourceError):
    """An archive is damaged, or holds something that must not be extracted."""
