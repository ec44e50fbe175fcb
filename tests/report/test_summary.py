import numpy as np
import pytest

from biclique import BicliqueSpectralClustering
from biclique.exceptions import FewerClustersWarning
from tests.calls import refuses
from tests.report.made import fitted, groups


def test_a_summary_says_what_was_chosen_and_why():
    for model in (fitted(), fitted(affinity="rbf")):
        text = str(model.summary())
        for size in np.bincount(model.labels_):
            assert f"{size} rows" in text
        assert model.order_reason_
        assert f"{model.order_:g} ({model.order_reason_})" in text
        assert "as asked for" in text
    assert model.gram_reason_ in text
    assert f"gamma {model.gamma_:.4g}" in text
    assert "7 of 120 landmarks a row" in str(fitted().summary())
    assert fitted("select").k_selection_.reason in str(fitted("select").summary())
    refuses(ValueError, "not fitted", BicliqueSpectralClustering(2).summary)
    html = fitted().summary()._repr_html_()  # in a notebook
    assert html.startswith("<div><b>BicliqueSpectralClustering of 120 rows</b><table>")
    assert html.count("<tr>") == len(fitted().summary().lines)


def test_a_summary_counts_all_rows_and_the_clusters_that_were_found():
    X = np.repeat(groups()[:4], 5, axis=0)
    for affinity, counted in (("neighborhoods", "20 rows"), ("rbf", "20 rows, 4 distinct")):
        with pytest.warns(FewerClustersWarning):
            text = str(BicliqueSpectralClustering(6, affinity=affinity, random_state=0).fit(X).summary())
        assert text.startswith(f"BicliqueSpectralClustering of {counted}\n")
        assert "4 found, 6 asked for" in text
        assert "as asked for" not in text
