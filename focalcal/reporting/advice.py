"""A recommendation for arrays: what `from focalcal import recommend` and the command of that name return."""

import base64
import html
import io
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from focalcal.calibration import recommend as choosing
from focalcal.calibration.calibrators import Calibrator, load_calibrator, new_calibrator
from focalcal.calibration.catalogue import METHODS
from focalcal.calibration.files.logits_io import RunLogits, Split
from focalcal.calibration.files.shapes import KINDS, checked_splits
from focalcal.calibration.fitting.search import K24_GAMMAS
from focalcal.calibration.saved import write_record
from focalcal.common.arrays import unmasked
from focalcal.common.errors import UserError
from focalcal.common.intervals import CONFIDENCE, level_text, tails
from focalcal.common.messages import error_prefix, unknown_name
from focalcal.common.text_table import aligned_lines
from focalcal.reporting.recommendation import (
    candidate_cells,
    caution_texts,
    explanation_texts,
    failure_text,
    headline_text,
    is_tested,
    reason_text,
    summary_text,
    use_text,
)
from focalcal.reporting.text import format_number
from focalcal.training.catalogue import parse_loss, training_gamma

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NEEDED = "{name!r} is missing; install what this needs with: pip install '.[recommend]' in the clone"


@dataclass(frozen=True, repr=False)
class Recommendation:
    """A calibrator that was chosen for a model, and what led to it.

    Parameters
    ----------
    details, record, spec : dict
        What led to it, the fitted calibrator and the settings, as the file has them that `write` writes.

    Attributes
    ----------
    calibrator : Calibrator
        Fitted to all samples that chose it; `focalcal.save` writes it to a file.
    method : str
        Its id (docs/names.md); "none" means to leave the model as it is.
    reason, failure : str
        Why it was chosen and how sure that is; why not to use it after all, "" if nothing speaks against it.
    cautions : list of str
        What speaks against relying on the result.
    table : pandas.DataFrame
        One row per candidate, best first. `held_out_nll` is the cross-validated log-loss that decides. Scores
        begin with `test_` if there are test samples; otherwise they begin with `held_out_`, since they are
        cross-validated too.

    Examples
    --------
    >>> import numpy as np
    >>> from focalcal import recommend
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 90)
    >>> logits = 4 * (np.eye(3)[labels] + rng.normal(size=(90, 3)))  # overconfident
    >>> found = recommend(logits, labels)
    >>> found.cautions
    []
    >>> found.table[["method", "held_out_nll"]].round(2).values.tolist()
    [['ts-prior', 0.88], ['none', 1.68]]
    """

    details: Mapping[str, Any]
    record: Mapping[str, Any]
    spec: Mapping[str, Any]

    @property
    def calibrator(self) -> Calibrator:
        """Return the recommended calibrator, fitted."""
        return load_calibrator(self.record)

    @property
    def method(self) -> str:
        """Return the id of the recommended calibrator."""
        return self.details["method"]

    @property
    def reason(self) -> str:
        """Return why it is recommended, and how sure that is."""
        return reason_text(self.details)

    @property
    def failure(self) -> str:
        """Return why not to use it after all, "" if nothing speaks against it."""
        return failure_text(self.details)

    @property
    def cautions(self) -> list[str]:
        """Return what speaks against relying on the result, one sentence each."""
        return caution_texts(self.details)

    @property
    def table(self) -> "pd.DataFrame":
        """Return one row per candidate, best first."""
        try:
            import pandas as pd  # noqa: PLC0415 - not among the packages of the library
        except ImportError as error:
            raise ImportError(NEEDED.format(name=error.name)) from None

        begin = "test_" if is_tested(self.details) else "held_out_"
        rows = []
        for candidate in self.details["candidates"]:
            own = {name: value for name, value in candidate.items() if name not in {"test", "boundaries"}}
            rows.append(own | {f"{begin}{name}": value for name, value in candidate["test"].items()})
        return pd.DataFrame(rows)

    def plot(self, title: str = "") -> "Figure":
        """Return a Matplotlib figure of reliability before and after the calibrator."""
        try:
            from focalcal.reporting.figures.reliability import draw_before_after  # noqa: PLC0415
            from focalcal.reporting.figures.style import house_style  # noqa: PLC0415
        except ImportError as error:
            raise ImportError(NEEDED.format(name=error.name)) from None

        with house_style():
            drawn = draw_before_after({use_text(self.method): [self.details["reliability"]]}, "")
            drawn.suptitle(title, parse_math=False)
        return drawn

    def write(self, path: str | os.PathLike[str], source: Mapping[str, Any] | None = None) -> None:
        """Write the calibrator, with what led to it and its source, to a file that `focalcal.load` reads."""
        more = {"recommendation": self.details, "spec": self.spec, **({"source": source} if source else {})}
        write_record(self.record, path, more)

    def __repr__(self) -> str:
        return summary_text(self.details)

    def _repr_html_(self) -> str:
        """Return the recommendation as notebooks show it: in words, as a table and, if possible, a figure."""
        escape = html.escape
        head, *rows = candidate_cells(self.details)
        lines = [f"<p>{escape(line)}</p>" for line in explanation_texts(self.details)]
        cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
        return (
            f"<p><b>{escape(headline_text(self.details))}</b></p>{''.join(lines)}<table><thead><tr>"
            + "".join(f"<th>{escape(cell)}</th>" for cell in head)
            + f"</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in cells)}</tbody></table>"
            + "<p>* recommended. ± one standard error of the difference.</p>"
            + self._picture()
        )

    def _picture(self) -> str:
        """Return the figure as an HTML image, "" where Matplotlib is missing."""
        content = io.BytesIO()
        try:
            self.plot().savefig(content, format="png", dpi=100)
        except ImportError:
            return ""
        encoded = base64.b64encode(content.getvalue()).decode()
        return f'<img alt="Reliability before and after" src="data:image/png;base64,{encoded}">'


def recommend(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    test: tuple[ArrayLike, ArrayLike] | None = None,
    methods: Sequence[str] | None = None,
    loss: str = "",
    kind: str = "logits",
    tell: Callable[[str], object] | None = None,
) -> Recommendation:
    """Return the calibrator to use for a model, chosen by cross-validated log-loss.

    Parameters
    ----------
    logits, labels : array (n, k), array (n,)
        Logits, and labels 0..k-1, of samples that the model was not trained on.
    test : pair of arrays, optional
        Logits and labels of other samples, which measure the result and choose nothing. Without them every
        number is cross-validated.
    methods : sequence of str, optional
        Ids of the candidates; by default all calibrators. The model as it is and temperature scaling are
        always among them.
    loss : str, optional
        Training loss, as in "focal-3": adds the calibrators that need its gamma.
    kind : {"logits", "probabilities"}
        What `logits` are. Of probabilities the logarithms are taken; the calibrator takes logarithms too.
    tell : callable, optional
        Is told in one line how each candidate did: `tell=print` shows progress.

    Returns
    -------
    Recommendation
        With `calibrator`, `table`, `cautions`, `plot()` and a display in notebooks.

    Raises
    ------
    ValueError
        If an array, a method or the loss is not what is allowed.

    Examples
    --------
    >>> import numpy as np
    >>> from focalcal import recommend
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 90)
    >>> logits = 4 * (np.eye(3)[labels] + rng.normal(size=(90, 3)))  # overconfident
    >>> found = recommend(logits, labels)
    >>> found.method
    'ts-prior'
    >>> found.calibrator.predict_proba(logits[:2]).shape
    (2, 3)
    """
    given = {"val_logits": logits, "val_labels": labels}
    if test is not None:
        given |= dict(zip(("test_logits", "test_labels"), test, strict=True))
    arrays = {name: unmasked(name, values) for name, values in given.items()}
    told: list[str] = []
    try:
        if kind not in KINDS:
            raise unknown_name("kind", kind, KINDS)
        splits = checked_splits(arrays, kind, "recommend", told)
        chosen = default_spec(methods, loss)
    except UserError as error:
        raise ValueError(str(error)) from None
    for warning in told:
        warnings.warn(warning, stacklevel=2)
    return recommend_splits(splits, chosen, tell or str)


def default_spec(methods: Sequence[str] | None, loss: str) -> dict[str, Any]:
    """Return the settings of a recommendation; a UserError names an unknown method or loss."""
    for method in methods or ():
        if method not in METHODS:
            raise unknown_name("methods", method, METHODS)
    if loss:
        with error_prefix("loss"):
            try:
                parse_loss(loss)
            except UserError as error:
                raise UserError(f"{error}; leave it out for any other") from None
    return {
        "run": {"loss": loss, "gamma": training_gamma(loss)},
        "methods": list(METHODS) if methods is None else list(methods),
        "gammas": list(K24_GAMMAS),
        "temperatures": {"start": 0.01, "stop": 5.0, "step": 0.01},
        "bins": 15,
        "adaece": "split",
    }


def by_task(found: Recommendation, samples: Split, tasks: NDArray[np.str_]) -> list[dict[str, Any]]:
    """Return how the recommended calibrator does on the samples of each task when fitted to all others.

    One row per task: its samples, accuracy, and log-losses as trained and after the calibrator.
    """
    rows: list[dict[str, Any]] = []
    trained = new_calibrator(choosing.LEAVE).fit(samples.logits, samples.labels)
    for task in dict.fromkeys(tasks.tolist()):
        own = tasks == task
        fitted = new_calibrator(found.method).fit(samples.logits[~own], samples.labels[~own])
        labels = samples.labels[own]
        before, after = (
            -each.predict_log_proba(samples.logits[own])[np.arange(len(labels)), labels].mean()
            for each in (trained, fitted)
        )
        accuracy = float(np.mean(samples.logits[own].argmax(axis=1) == labels))
        rows.append(
            {
                "task": task,
                "samples": len(labels),
                "accuracy": accuracy,
                "nll_before": float(before),
                "nll_after": float(after),
            }
        )
    return rows


def task_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the rows of `by_task` as lines of a table, how many tasks gain, and the change over all.

    Its interval resamples the tasks, each with its questions.
    """
    sizes, before, after = (
        np.array([row[name] for row in rows]) for name in ("samples", "nll_before", "nll_after")
    )
    drawn = np.random.default_rng(0).integers(len(rows), size=(choosing.RESAMPLES, len(rows)))
    changes = (sizes * (after - before))[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = (format_number(bound, 4) for bound in np.quantile(changes, tails(CONFIDENCE)))
    overall = [format_number(np.average(losses, weights=sizes), 4) for losses in (before, after)]
    cells = [
        (
            row["task"],
            str(row["samples"]),
            format_number(100 * row["accuracy"], 1),
            *(format_number(row[name], 4) for name in ("nll_before", "nll_after")),
        )
        for row in rows
    ]
    head = ("task", "questions", "accuracy (%)", "log-loss", "calibrated on the other tasks")
    summary = (
        f"Lower log-loss in {np.sum(after < before)} of {len(rows)} tasks. Over all questions "
        f"{overall[0]} → {overall[1]} ({level_text(CONFIDENCE)} interval of the change over tasks {low} to "
        f"{high})."
    )
    return [*aligned_lines([head, *cells], left=1), "", summary]


def recommend_splits(
    logits: RunLogits | Split, spec: Mapping[str, Any], tell: Callable[[str], object]
) -> Recommendation:
    """Return the recommendation for checked logits."""
    found = choosing.recommend(logits, spec, tell=tell)
    return Recommendation(found.details, found.record, spec)
