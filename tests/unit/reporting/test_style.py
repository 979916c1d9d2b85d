from focalcal.reporting.figures import style


def test_a_row_of_panels_is_as_tall_as_its_tallest():
    drawn, axes = style.panels(4, width=2, height=[1, 2, 5, 1], columns=2)
    assert drawn.get_size_inches().tolist() == [4, 2 + 5 + 0.3]
    assert axes[2].get_gridspec().get_height_ratios() == [2, 5]
    assert [axis.get_subplotspec().rowspan.start for axis in axes] == [0, 0, 1, 1]
