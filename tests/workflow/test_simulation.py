"""The simulation through the workflow, in its quick form."""

from tests.project import ROOT


def test_the_simulation_needs_no_run_and_ends_in_a_table_and_a_figure(fresh_project):
    overlay = ("--configfile", str(ROOT / "configs" / "simulated.yaml"))
    quick = (
        "simulation={classes: [2, 10], samples: [100, 500], repetitions: 2, methods: [none, ts, fts, two-ts]}"
    )
    command = (*overlay, "--config", quick, "--", "simulate_all")
    planned = fresh_project.planned(*command)
    assert set(planned) == {"simulate", "simulated_tables", "simulated_figures", "simulate_all"}
    fresh_project.snakemake(*command)
    results = fresh_project.root / "results"
    assert "label noise 0.1" in (results / "tables" / "simulated.md").read_text("utf-8")
    assert (results / "figures" / "simulated.png").stat().st_size > 10_000
