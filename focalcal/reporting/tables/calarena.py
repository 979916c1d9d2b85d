"""Our calibrators beside the results that CalArena publishes, on the networks that both have."""

from focalcal.calibration.catalogue import METHODS, METRICS
from focalcal.reporting.products import table
from focalcal.reporting.records.measurements import LEADING, SETTING
from focalcal.reporting.records.published import calarena_results
from focalcal.reporting.records.sources import Sources
from focalcal.reporting.tables.columns import number_column, scaled_column
from focalcal.reporting.tables.table import Column, Table

SHOWN = {name: METRICS[name] for name in (LEADING, "brier")}
THEIRS = {name: f"{name}_calarena" for name in SHOWN}


@table(
    section="paper tables",
    order=90,
    heading="Beside CalArena",
    caption="Test scores on the networks that CalArena (Berta et al. 2026) has too, fitted by log-loss and "
    "scored on the same samples.",
    inputs=("metrics",),
)
def calarena(sources: Sources) -> Table | None:
    """Return one row per network and calibrator, by rising log-loss; None without common networks."""
    published = calarena_results()
    rows = sources.metrics
    rows = rows[(rows["split"] == "test") & rows["criterion"].isin(["", LEADING])]
    rows = rows[
        rows["metric"].isin(SHOWN) & rows["method"].map(lambda name: METHODS[name].compared).astype(bool)
    ]
    rows = rows.merge(published[SETTING].drop_duplicates())
    if rows.empty:
        return None
    ours = rows.pivot_table("value", [*SETTING, "method"], "metric").reset_index()
    theirs = published.rename(columns=THEIRS).merge(ours[SETTING].drop_duplicates())
    # Their calibrators that we do not have keep the place of a method, so that no two of them are merged.
    theirs["method"] = theirs["method"].where(theirs["method"] != "", theirs["calibrator"])
    frame = ours.merge(theirs, on=[*SETTING, "method"], how="outer")
    names = frame["method"].map({name: kind.label for name, kind in METHODS.items()})
    frame["calibrator"] = names.fillna(frame["calibrator"])
    frame["best"] = frame[[LEADING, THEIRS[LEADING]]].min(axis="columns")
    frame["rank"] = frame.groupby(SETTING)["best"].rank(method="min").astype(int)
    frame["difference"] = frame[LEADING] - frame[THEIRS[LEADING]]
    columns = [*SETTING, "rank", "method", "calibrator", *SHOWN, *THEIRS.values(), "difference"]
    return Table(
        title="Test scores beside those that CalArena publishes",
        frame=frame.sort_values([*SETTING, "rank"])[columns].reset_index(drop=True),
        columns=(
            Column("Dataset", "dataset", merge=True),
            Column("Model", "model", merge=True),
            number_column("rank", "Rank by log-loss"),
            Column("Calibrator", "calibrator"),
            scaled_column(LEADING, f"{SHOWN[LEADING].heading}, ours", SHOWN[LEADING]),
            scaled_column(THEIRS[LEADING], f"{SHOWN[LEADING].heading}, CalArena's", SHOWN[LEADING]),
            scaled_column("difference", "Difference", SHOWN[LEADING], signed=True),
            scaled_column("brier", f"{SHOWN['brier'].heading}, ours", SHOWN["brier"]),
            scaled_column(THEIRS["brier"], f"{SHOWN['brier'].heading}, CalArena's", SHOWN["brier"]),
        ),
        group=("dataset", "model"),
        notes=(
            (
                "CalArena fits its calibrators to probabilities in single precision, with the "
                "implementations of the package probmetrics. Ranks are by the lower of two results."
            ),
        ),
    )
