import pytest

from focalcal.reporting import layout
from focalcal.workflow.provenance import ROOT


@pytest.mark.parametrize("figure", [*layout.FIGURES, *layout.PLACE_FIGURES], ids=lambda figure: figure.name)
def test_snakemake_s_report_captions_a_figure_as_ours_does(figure):
    text = (ROOT / "report" / f"{figure.name}.rst").read_text("utf-8")
    assert " ".join(text.split()).startswith(f"{figure.heading}. {figure.caption}")


def test_snakemake_s_report_names_every_table_of_the_statistics():
    text = (ROOT / "report" / "statistics.rst").read_text("utf-8")
    assert [name for name in layout.STATISTICS if f"``{name}``" not in text] == []
