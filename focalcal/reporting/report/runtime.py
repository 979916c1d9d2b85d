"""The program that draws charts in the browser: Vega-Lite with Vega, as one script without a network."""


def chart_runtime() -> str:
    """Return the script that defines `vegaEmbed`, to stand in a `script` element."""
    # Both take a moment to import, which only the report has to wait for.
    import vl_convert  # noqa: PLC0415

    from focalcal.reporting.charts.grammar import VEGA_LITE  # noqa: PLC0415

    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")
