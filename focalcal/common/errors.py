"""The one exception that means "the user can fix this"."""


class UserError(Exception):
    """A mistake of the user's, told in one line: what is wrong, its value, what is allowed, the repair."""
