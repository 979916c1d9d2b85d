"""The report's first page: what was compared, what won, by how much, and how sure that is."""

from collections import Counter
from html import escape

from focalcal.reporting.layout import FIGURES, TABLES
from focalcal.reporting.report.blocks import boxed, duration, figure_block, table_block
from focalcal.reporting.report.html_parts import VERDICT_SIGNS, plain_table
from focalcal.reporting.report.sources import Sources, failed

MOST_LISTED = 20
GLOSSARY = {
    "Calibration": "A model is calibrated if, of all predictions made with confidence 80 %, 80 % are right. "
    "Networks are often more confident than they are right.",
    "ECE": "Expected calibration error: predictions are put into bins by confidence; ECE is the average gap "
    "between confidence and accuracy of a bin. 0 is perfect. AdaECE uses bins with equally many samples.",
    "Focal loss": "Cross-entropy that counts easy samples less, the more so the larger its gamma.",
    "TS": "Temperature scaling: divide a trained model's logits by one number T, chosen on validation data. "
    "T above 1 lowers confidence. Which class is predicted does not change.",
    "FTS": "Focal temperature scaling (K24): TS followed by the focal calibration map with a gamma, both "
    "chosen on validation data.",
    "Ψ": "The map that turns a focal-loss model's output back into class probabilities (C21).",
    "Seed": "The same model trained again from other random numbers: shows how much is chance.",
    "K24, M20, C21": "Komisarenko & Kull 2024; Mukhoti et al. 2020; Charoenphakdee et al. 2021.",
}


def overview(sources: Sources) -> str:
    """Return the page: the comparison in words and bars, the state of runs and claims, figure, table."""
    words = "".join(f"<dt>{escape(word)}</dt><dd>{escape(text)}</dd>" for word, text in GLOSSARY.items())
    summary = "<summary>What do these words mean?</summary>"
    return "\n".join(
        [
            alert(sources),
            _what(sources),
            _result(sources),
            _tiles(sources),
            f'<details class="glossary">{summary}<dl>{words}</dl></details>',
            *(figure_block(sources, product) for product in FIGURES if product.page == "overview"),
            _best_as_trained(sources),
            *(table_block(sources, product) for product in TABLES if product.page == "overview"),
        ]
    )


def alert(sources: Sources) -> str:
    """Return a warning that names failed and missing runs; nothing where there are none."""
    items = [
        f"<li><code>{escape(run['path'])}</code>: {escape(run['status'])} {escape(run['message'])}</li>"
        for run in failed(sources.runs)
    ]
    items += [f"<li><code>{escape(path)}</code>: missing, it left no record</li>" for path in sources.missing]
    if not items:
        return ""
    rest = len(items) - MOST_LISTED
    shown = "".join(items[:MOST_LISTED]) + (f"<li>and {rest} more</li>" if rest > 0 else "")
    count = f"{len(items)} of {len(sources.runs) + len(sources.missing)}"
    return (
        f'<div class="alert" role="alert"><strong>⚠ {count} runs failed or are missing.</strong> '
        f"No average below contains them.<ul>{shown}</ul></div>"
    )


def _what(sources: Sources) -> str:
    counts = sources.headline["counts"]
    datasets, losses, seeds = counts["dataset"], counts["loss"], counts["seeds"]
    return (
        f'<p class="lead">We took <strong>{counts["runs"]} classifiers</strong> '
        f"({_count(datasets, 'dataset')}: {escape(', '.join(datasets))}; {_count(losses, 'training loss')}; "
        f"up to {seeds} seed{'s' * (seeds != 1)} each), measured how far their confidence is from their "
        "accuracy on test data, and corrected it after training in two ways: by temperature scaling (TS), "
        "the usual way, and by focal temperature scaling (FTS), proposed in K24.</p>"
    )


def _result(sources: Sources) -> str:
    """Return the bars of mean scores, and the answer to whether FTS beats TS."""
    head = sources.headline
    if not head["means"]:
        return "<p>No run has scores to compare.</p>"
    metric = escape(head["metric"])
    chart = (
        f'<div class="chart" role="group" aria-label="Mean test {metric} by calibrator">'
        f"<h3>Mean test {metric}, lower is better</h3>{_bars(head['means'])}"
        f'<p class="small">Fits chosen by validation {escape(head["criterion"])}; mean over settings of the '
        "mean over seeds.</p></div>"
    )
    return f'<div class="headline">{chart}{_answer(head["comparison"])}</div>'


def _bars(means: list[dict]) -> str:
    largest = max(entry["value"] for entry in means) or 1.0
    return "".join(
        f'<div class="bar {escape(entry["method"])}"><span class="bar-name">{escape(entry["name"])}</span>'
        '<span class="bar-track"><span class="bar-fill" '
        f'style="width:{100 * entry["value"] / largest:.1f}%"></span></span>'
        f'<span class="bar-value">{escape(entry["text"])}</span></div>'
        for entry in means
    )


def _answer(comparison: dict | None) -> str:
    if comparison is None:
        return ""
    won = comparison["outcomes"]
    return (
        '<div class="answer"><h3>Is FTS better than TS here?</h3>'
        f'<p class="verdict">{escape(comparison["answer"])}</p>'
        f"<p>FTS {escape(comparison['difference'])} on average; lower in {won['wins']}, equal in "
        f"{won['ties']}, higher in {won['losses']} runs.</p>"
        f'<p class="small">{escape(comparison["detail"])}</p></div>'
    )


def _tiles(sources: Sources) -> str:
    """Return links with the state of runs, claims and cost in numbers."""
    verdicts = Counter(claim["verdict"] for claim in sources.claims)
    good = len(sources.runs) - len(failed(sources.runs))
    tiles = [("#runs", f"{good} of {len(sources.runs) + len(sources.missing)}", "runs succeeded")]
    tiles += [
        ("#claims", str(verdicts.get(verdict, 0)), f"{sign} claims {verdict}")
        for verdict, sign in VERDICT_SIGNS.items()
    ]
    tiles.append(("#runs", duration(sum(cost.seconds for cost in sources.costs)), "of computing"))
    links = "".join(
        f'<a class="tile" href="{link}"><strong>{escape(value)}</strong> <span>{escape(label)}</span></a>'
        for link, value, label in tiles
    )
    return f'<div class="tiles">{links}</div>'


def _best_as_trained(sources: Sources) -> str:
    head = sources.headline
    unit = " (%)" if head["percent"] else ""
    headers = ("Dataset · model", "Training loss", f"Test {head['metric']}{unit}", "Cross-entropy has")
    rows = [
        (
            entry["place"],
            entry["loss"],
            (entry["score"], entry["score"]),
            (entry["cross_entropy"], entry["cross_entropy"]),
        )
        for entry in head["best_as_trained"]
    ]
    title = f"The training loss with the lowest test {head['metric']} before any calibration"
    return (
        f"<h3>Without calibration, which loss is best?</h3>{boxed(plain_table('best', title, headers, rows))}"
    )


def _count(values: list[str], word: str) -> str:
    plural = "" if len(values) == 1 else "es" if word.endswith("s") else "s"
    return f"{len(values)} {word}{plural}"
