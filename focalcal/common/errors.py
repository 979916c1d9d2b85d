"""The one exception that means "the user can fix this"."""


class UserError(Exception):
    """A user's mistake, explained in one line: what is wrong, its value, what is allowed, the repair."""
