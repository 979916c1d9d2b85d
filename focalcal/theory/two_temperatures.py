"""Psi^gamma of a softmax as two temperatures: one for the top class, one among the other classes.

For a confident prediction, Psi^gamma of softmax(z / T) multiplies the log-odds of the top class by gamma + 1
and leaves the log-odds among all other classes as they are. In the limit, focal temperature scaling is
therefore scaling with T_rest = T among the others and T_top = T / (gamma + 1) for the top class.
"""

from focalcal.theory.arguments import checked_above

CLEARLY_OFF = 0.1
"""From this relative difference of two temperatures on, they predict the sign of gamma."""


def implied_gamma(top_temperature: float, rest_temperature: float) -> float:
    """Return T_rest / T_top - 1: the gamma that acts with these temperatures on confident predictions.

    Its sign is what two temperatures predict of the gamma that data choose: positive if the other classes
    need a higher temperature than the top class.

    Parameters
    ----------
    top_temperature, rest_temperature : float
        Above 0: of the top class against the rest, and among the rest.

    Returns
    -------
    float
        Above -1.

    Examples
    --------
    >>> implied_gamma(0.5, 1.5)
    2.0
    """
    top = checked_above("top_temperature", top_temperature)
    return checked_above("rest_temperature", rest_temperature) / top - 1.0


def is_clear(gamma: float) -> bool:
    """Return whether temperatures that imply this gamma differ clearly: by `CLEARLY_OFF` or more."""
    return max(gamma, 1.0 / (1.0 + gamma) - 1.0) >= CLEARLY_OFF
