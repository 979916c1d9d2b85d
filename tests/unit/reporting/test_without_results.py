"""A configuration all of whose runs diverged still gets its tables, figures and report, which say so."""

from tests.unit.reporting.made_results import MadeResults

BLOCK = {
    "datasets": ["gauss-3"],
    "models": ["mlp"],
    "losses": ["ce", "focal-2"],
    "seeds": [1],
    "recipe": "quickstart",
}


def test_a_report_of_diverged_runs_only(tmp_path):
    runs = [f"gauss-3/mlp/{loss}/seed1" for loss in BLOCK["losses"]]
    made = MadeResults(tmp_path, [BLOCK], failed=runs)
    made.write_runs()
    made.write_tables()
    made.write_figures()
    text = made.write_report().read_text("utf-8")
    assert "2 of 2 runs failed or are missing" in text
    assert "No run has both TS and FTS" in text
