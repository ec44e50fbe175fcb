import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import sparse

from biclique import BicliqueSpectralClustering
from biclique.exceptions import DataError, FewerClustersWarning, ParameterError
from biclique.progress import Progress
from biclique.report.gather import BARS, DIFFERENCES, TYPICAL, Difference, Shown, gather
from biclique.report.markup import element, fill
from biclique.report.page import make_page
from biclique.report.places import View, principal, views_of
from biclique.report.rows import LEAST_POINTS, MOST_POINTS, Facts, Subject, look, thinned
from biclique.report.sample import CELLS, SAMPLE_LEAST, SAMPLE_ROWS, Sampled, groups_of
from biclique.report.sentence import doubtful_text, first_sentence, number_text, percent, stability_text, value_text
from biclique.report.shown_columns import Coded, Columns
from tests.calls import refuses
from tests.optional import Optional
from tests.report.made import HOSTILE, SURROGATE, fitted, given, groups

pd = Optional("pandas")


class Page(HTMLParser):
    """Elements with their attributes, and the texts of scripts and styles."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.raw, self.inside, self.texts = [], [], None, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = (tag, dict(attrs)) if tag in ("script", "style") else None

    def handle_endtag(self, tag):  # noqa: ARG002
        self.inside = None

    def handle_data(self, data):
        if self.inside:
            self.raw.append((*self.inside, data))
        else:
            self.texts.append(data)

    @property
    def data(self):
        return json.loads(next(text for _, attrs, text in self.raw if attrs.get("id") == "data"))


def unpacked(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype=dtype)


def write(tmp_path, model, X, **options):
    path = tmp_path / "report.html"
    model.report(X, path, n_splits=options.pop("n_splits", 0), **options)
    return path.read_text(encoding="utf-8")


def check_policy(page):
    """One script and one style by their hashes, no handlers, no style attributes, no addresses."""
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for kind, name in (("script", "script-src"), ("style", "style-src")):
        texts = [text for tag, attrs, text in page.raw if tag == kind and attrs.get("type") != "application/json"]
        assert len(texts) == 1
        digest = base64.b64encode(hashlib.sha256(texts[0].encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    for tag, attrs in page.tags:
        assert not [name for name in attrs if name.startswith("on") or name in ("style", "src", "srcset")], (tag, attrs)
        assert attrs.get("href", "#").startswith("#")


def test_a_page_is_self_contained_and_says_what_was_found(tmp_path):
    model, X = fitted(), groups()
    text = write(tmp_path, model, X, title="three groups", n_splits=2)
    page = Page(text)
    check_policy(page)
    assert "3 clusters;" in text
    certain = replace(look(model._subject(), X, None), best=np.ones(len(X)))
    data, again = (gather(model._subject(), X, Progress()) for _ in range(2))
    assert make_page(data) == make_page(again)
    assert make_page(replace(data, facts=certain)).count("over 99.9 %") == 3  # of sure, never 100 %
    assert re.search(r"NaN|Infinity", text.split('id="data">')[1].split("</script>")[0]) is None
    data = page.data
    assert np.array_equal(unpacked(data["labels"], "<u2"), model.labels_)
    assert np.array_equal(unpacked(data["rows"], "<u4"), np.arange(len(X)))
    sure = unpacked(data["sure"], np.uint8) / 255
    np.testing.assert_allclose(sure, model.predict_proba(X).max(axis=1), atol=0.003)
    assert data["path"] is None
    assert "BicliqueSpectralClustering(n_clusters=3, random_state=0).fit(X)" in " ".join(page.texts)
    assert "stable" in text
    for words in ("Map of the rows", "What sets each cluster apart", "How sure", "Eigenvalues", "To repeat this"):
        assert words in text


def test_a_map_of_few_places_does_not_come_first():
    """Rows of a connected component that is a cluster are equal by similarity."""
    X = groups()
    columns = Columns([f"x{j}" for j in range(3)], X, [None] * 3)
    apart, equal = X, np.repeat(np.eye(3), 40, axis=0)
    for embedded, first in ((apart, "by similarity"), (equal, "by the columns (two principal components)")):
        assert views_of(X, embedded, columns, given=False, raw=False)[0].name == first


def test_places_keep_their_shape(tmp_path):
    views = Page(write(tmp_path, fitted(), groups())).data["views"]
    (view,) = (view for view in views if view["name"] == "by similarity")
    x, y = (unpacked(view[axis], "<u2").astype(float) for axis in "xy")
    assert max(x.max(), y.max()) == 65_535
    assert (x.max() / 65_535, y.max() / 65_535) == pytest.approx((view["wide"], view["tall"]), abs=1e-4)


def test_hostile_names_stay_text(tmp_path):
    X = groups()
    n = len(X)
    frame = pd.DataFrame({name: X[:, j % 3] for j, name in enumerate(HOSTILE)})
    frame["levels"] = [HOSTILE[row % len(HOSTILE)] for row in range(n)]
    ids = [f"{[*HOSTILE, SURROGATE][row % 10]} {row}" for row in range(n)]
    texts = {"title": HOSTILE[0], "command": HOSTILE[1], "notes": [*HOSTILE, SURROGATE]}
    text = write(tmp_path, fitted(), X, table=frame, ids=ids, **texts)
    page = Page(text)
    check_policy(page)
    names = {tag for tag, _ in page.tags}
    assert not names & {"img", "b", "iframe", "object", "a href"}
    assert [tag for tag, _ in page.tags].count("script") == 3
    assert not [c for c in text if ord(c) < 32 and c != "\n"]
    assert "\u202e" not in text
    assert "\u200f" not in text
    assert len(text) < 400_000
    assert page.data["exactIds"] is False  # they are cut, so row numbers are copied
    texts = "".join(page.texts)
    assert HOSTILE[0] in texts
    assert "\\x00" in texts
    assert "{{data}} {{ title }}" in texts


def test_the_thirty_columns_that_separate_most_are_shown():
    X = np.random.default_rng(0).normal(size=(60, 100))
    X[30:, :40] += 4
    model = BicliqueSpectralClustering(2, random_state=0).fit(X)
    shown_columns = gather(model._subject(), X, Progress()).columns
    assert len(shown_columns) == 30
    assert all(int(column.coded.name[1:]) < 40 for column in shown_columns)


def largest_page(n, n_columns, k, name, end_of_id):
    """The data of the largest page: as much of everything as ``gather`` gives for such a table, all names long."""
    random = np.random.default_rng(0)
    small = gather(fitted(affinity="rbf")._subject(), groups(), Progress())
    labels, best = np.arange(n) % k, random.random(n).astype(np.float32)
    drawn = thinned(labels, k, MOST_POINTS, LEAST_POINTS, np.random.RandomState(0))
    places = thinned(labels[drawn], k, SAMPLE_ROWS, SAMPLE_LEAST, np.random.RandomState(0))
    cells, clusters = groups_of(labels[drawn][places], k, CELLS)
    codes = random.integers(0, 255, (30, len(drawn)), dtype=np.uint8)
    levels, values = [f"{j} {name}" for j in range(255)], [-1234.5 + j for j in range(255)]
    difference = Difference(name, name, 1.0, 0.5, 0.25)
    orders = len(small.sampled.path.orders)
    path = replace(small.sampled.path, labels=np.tile(labels[drawn][places], (orders, 1)))
    return replace(
        small,
        title=name,
        subject=replace(small.subject, n_clusters=k),
        n_columns=n_columns,
        facts=Facts(labels, best, np.ones(n, np.float32), random.random((k, k)) * n / k**2),
        stability=np.full(k, 0.5),
        differences=[[difference] * DIFFERENCES] * k,
        typical=[[name] * TYPICAL] * k,
        drawn=drawn,
        ids=[f"{row} {end_of_id}" for row in drawn],
        views=[View(name, (name, name), random.normal(size=(len(drawn), 2))) for _ in range(2)],
        columns=[
            Shown(
                Coded(name, column, levels if means is None else values, True),
                means,
                random.random((k + 1, BARS if j < 15 else 255)),
            )
            for j, (column, means) in enumerate(zip(codes, [np.full(k + 1, -1234.5)] * 15 + [None] * 15, strict=True))
        ],
        places=places,
        sampled=Sampled(random.random((len(cells), len(cells))), clusters, path),
        notes=[name] * 20,
        command=name * 20,
    )


@pytest.mark.parametrize(
    ("k", "name", "end_of_id"),
    [
        (100, "😀" * 300, "é" * 7),  # four bytes each; ids just short enough to be kept whole
        (1_500, '<"&>' * 80, "<>"),  # escaped, each takes up to six bytes
    ],
)
def test_the_largest_page_of_a_million_rows_and_a_thousand_columns_stays_below_three_megabytes(k, name, end_of_id):
    data = largest_page(1_000_000, 1_000, k, name, end_of_id)
    assert len(data.drawn) == MOST_POINTS
    assert len(data.places) == SAMPLE_ROWS
    text = make_page(data)
    assert len(text.encode()) < 3_000_000
    found = Page(text).data
    assert found["exactIds"]
    assert len(found["columns"][-1]["values"]) == 255
    if k > CELLS:
        assert found["matrix"]["size"] == CELLS
        assert "of the 160 largest clusters" in text


def test_columns_that_are_shown_may_be_others_than_those_of_the_fit(tmp_path):
    X = groups()
    model = fitted()
    frame = pd.DataFrame({"metres": X[:, 0] * 1000, "kind": np.array(["a", "b", "c"])[model.labels_]})
    data = Page(write(tmp_path, model, X, table=frame)).data
    by_name = {column["name"]: column for column in data["columns"]}
    assert list(by_name) == ["kind", "metres"]  # the kind separates best
    values = np.array(by_name["metres"]["values"])[unpacked(by_name["metres"]["codes"], np.uint8)]
    np.testing.assert_allclose(values, X[:, 0] * 1000, rtol=1e-4, atol=1e-3)
    kinds = np.array(by_name["kind"]["values"])[unpacked(by_name["kind"]["codes"], np.uint8)]
    assert kinds.tolist() == frame["kind"].tolist()
    refuses(DataError, "table has 3 rows, X has 120", write, tmp_path, model, X, table=frame[:3])
    refuses(DataError, "ids has 2 entries, X has 120", write, tmp_path, model, X, ids=["a", "b"])


def test_means_and_distributions_of_every_cluster_are_shown(tmp_path):
    """Of a category one row: the most frequent level; in cards the level that is more frequent than elsewhere."""
    X, model = groups(), fitted()
    kind = np.array(["a", "b", "c"])[model.labels_]
    kind[:5] = "b"
    frame = pd.DataFrame({"metres": X[:, 0] * 1000, "kind": kind, "same": np.where(model.labels_ == 1, "yes", "no")})
    text = write(tmp_path, model, X, table=frame)
    means = text.split("What is in each cluster")[1].split("</section>")[0]
    for cluster in range(3):
        own = model.labels_ == cluster
        assert number_text(1000 * X[own, 0].mean()) in means
        assert f"{percent(np.bincount(np.unique(kind, return_inverse=True)[1][own]).max() / own.sum())}<" in means
    assert number_text(1000 * X[:, 0].mean()) in means
    assert means.count("<tr>") == 1 + 3
    assert means.count('class="spread"') == 3 * 4
    cards = text.split("What sets each cluster apart")[1].split("</section>")[0]
    assert cards.count("<bdi>kind</bdi>") == cards.count("<bdi>metres</bdi>") == 3
    assert (
        "Clusters that are exactly one value of a column: 1 (same = yes), 2 (kind = c). Leave that column out?" in text
    )
    assert "Other orders" not in text


def test_thinning_is_said_and_a_function_gives_the_ids_of_the_drawn_rows_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("biclique.report.gather.MOST_POINTS", 60)
    monkeypatch.setattr("biclique.report.page.MOST_POINTS", 60)
    asked = []
    text = write(tmp_path, fitted(), groups(), ids=lambda rows: [asked.append(row) or f"r{row}" for row in rows])
    data = Page(text).data
    assert "The map draws 60 of them" in text
    drawn = unpacked(data["rows"], "<u4").tolist()
    assert asked == drawn
    assert data["n"] == len(drawn) == 60
    assert data["ids"] == [f"r{row}" for row in drawn]
    refuses(DataError, "ids returned 1 names for 60 rows", write, tmp_path, fitted(), groups(), ids=lambda _: ["one"])


def test_wrong_arguments(tmp_path):
    with pytest.raises(ParameterError, match="n_splits must be a whole number from 0, got -1"):
        fitted().report(groups(), tmp_path / "x.html", n_splits=-1)
    refuses(DataError, "there is no folder", fitted().report, groups(), tmp_path / "nowhere" / "x.html")
    refuses(ValueError, "not fitted", BicliqueSpectralClustering(2).report, groups(), tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("case", ["graph", "kernel", "sparse", "infinite", "one", "two"])
def test_every_kind_of_model_has_a_report(tmp_path, case):
    rows = X = groups()
    asked = {"graph": {"affinity": "nearest_neighbors"}, "kernel": {"affinity": "rbf"}, "infinite": {"order": np.inf}}
    model = fitted(**asked.get(case, {}))
    if case == "sparse":
        rows = sparse.csr_array(np.where(X > 1, X, 0.1))
        model = BicliqueSpectralClustering(3, kernel_params={"metric": "cosine"}, random_state=0).fit(rows)
    if case in ("one", "two"):
        rows = X[:, :2]
        model = BicliqueSpectralClustering({"one": 1, "two": 2}[case], random_state=0).fit(rows)
    page = Page(write(tmp_path, model, rows))
    check_policy(page)
    assert page.data["n"] == len(X)
    assert page.data["columns"]
    if case == "kernel":  # the slider is for kernels
        assert page.data["path"]["orders"][-1] == "∞"
    else:
        assert page.data["path"] is None
    if case == "infinite":
        assert "Degrees are not known at order infinity" in "".join(page.texts)
    if case == "two":
        assert page.data["views"][0]["name"] == "the two columns"


def test_fewer_clusters_than_asked_for_are_said(tmp_path):
    X = np.repeat(groups()[:4], 5, axis=0)
    with pytest.warns(FewerClustersWarning):
        model = BicliqueSpectralClustering(6, random_state=0).fit(X)
    assert "4 clusters were found, 6 asked for." in write(tmp_path, model, X)
    subject = "4 clusters returned, 6 asked for: X has only 4 distinct rows"
    assert "4 clusters were found" not in write(tmp_path, model, X, notes=[subject])


def test_the_page_says_what_the_clusters_were_made_from(tmp_path):
    X, circular = groups(), "differences are no proof that groups exist"
    assert f"The clusters were made from these columns, so {circular}." in write(tmp_path, fitted(), X)
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1], "z": X[:, 2], "day": pd.Timestamp("2024-01-01")})
    text = write(tmp_path, fitted(), X, table=frame)  # an array was fitted: nobody knows
    assert f"If the clusters were made from them, {circular}" in text
    assert "not used" not in text
    text = write(tmp_path, fitted(), X, table=frame, used=["x", "day"])
    assert f"made from 2 of these 4 columns, so {circular}" in text.replace("differences in them", "differences")
    assert re.search("<bdi>y</bdi>[^/]*not used", text)
    assert not re.search("<bdi>(x|day)[^/]*</bdi>[^/]*not used", text)
    text = write(tmp_path, fitted(), X, table=frame, used=[])
    assert "The clusters were made from other columns than these." in text
    named = BicliqueSpectralClustering(3, random_state=0).fit(frame[["x", "y"]])
    assert "made from 2 of these 4 columns" in write(tmp_path, named, frame[["x", "y"]], table=frame)


def test_a_page_of_a_given_matrix_says_so(tmp_path):
    model, K = given()
    text = write(tmp_path, model, K)
    check_policy(Page(text))
    assert "The clusters were made from a matrix that was given.<" in text
    assert text.count("There are no columns to compare") == 3
    assert "No column differs" not in text
    text = write(tmp_path, model, K, table=groups())
    assert "was given. If that was computed from these columns, differences are no proof that groups exist." in text
    assert "made from these columns, so" not in text


def test_a_selection_is_shown(tmp_path):
    model = fitted("select")
    text = write(tmp_path, model, groups())
    assert "How the number of clusters was chosen" in text
    assert model.k_selection_.reason[:30] in text
    assert f"; {model.k_selection_.runner_up} clusters: " in text


def facts(best, sizes, mixed=None):
    k = len(sizes)
    labels = np.repeat(np.arange(k), sizes)
    return Facts(labels, np.asarray(best, float), np.ones(len(labels)), np.zeros((k, k)) if mixed is None else mixed)


def test_the_first_sentence():
    subject = Subject("m", {}, None, 2, None, None, None)
    assert first_sentence(subject, facts([1, 1, 1, 1], [2, 2])) == "2 clusters; every row fits its cluster."
    mixed = np.array([[1.0, 1.0], [0.0, 2.0]])
    found = first_sentence(subject, facts([0.4, 1, 1, 1], [2, 2], mixed))
    assert found == "2 clusters; cluster 0 is hard to tell from 1; 25 % of the rows fit nowhere well."
    assert first_sentence(subject, facts([1.0], [1])).startswith("1 cluster;")


def test_rows_that_fit_nowhere_well_are_counted_once():
    degrees = np.array([0.01, 1.0, 1.0, 1.0, 0.01, 1.0, 1.0, 1.0])
    found = Facts(np.repeat([0, 1], 4), np.array([0.4, 0.4, 1, 1, 1, 1, 1, 1]), degrees, np.zeros((2, 2)))
    assert doubtful_text(found) == "3 rows fit nowhere well: between clusters 1, far from all others 2."
    assert doubtful_text(facts([1, 1, 1, 0.4], [2, 2])).startswith("1 row fits nowhere well: between clusters 1,")
    assert doubtful_text(facts([1, 1, 1, 1], [2, 2])) == "Every row fits its cluster."


def test_shares_say_that_missing_values_are_left_out(tmp_path):
    model, X, said = fitted(), groups(), "Missing values are left out: shares are of the others."
    whole = pd.DataFrame({"x": X[:, 0], "color": ["red", "blue", "blue"] * 40})
    assert said not in write(tmp_path, model, X, table=whole)
    assert said in write(tmp_path, model, X, table=whole.assign(color=whole.color.where(whole.index > 1)))


@pytest.mark.parametrize(
    ("text_of", "values", "texts"),
    [
        (percent, (0, 0.0004, 0.004, 0.02), ["0 %", "under 0.1 %", "0.4 %", "2 %"]),
        (percent, (0.255, 0.996, 0.9999, 1), ["26 %", "99.6 %", "over 99.9 %", "100 %"]),
        (number_text, (0, 1234.5, 0.01234, -3.14159, 1e9, 20.0), ["0", "1,234", "0.0123", "-3.14", "1.00e+09", "20"]),
        (stability_text, (0.9, 0.7), ["0.90, stable", "0.70, fairly stable"]),
        (stability_text, (0.3, np.nan), ["0.30, not stable", "not computed"]),
        (lambda year: value_text("born (year)", year), (2024.0, 2024.5, 2024.999), ["2024-01", "2024-07", "2024-12"]),
    ],
)
def test_values_in_words(text_of, values, texts):
    assert [text_of(value) for value in values] == texts


def test_markup_escapes():
    assert element("p", "<b>", title='"') == '<p title="&quot;">&lt;b&gt;</p>'
    assert element("p", element("b", "x")) == "<p><b>x</b></p>"
    assert element("input", disabled=True, value=None) == "<input disabled>"
    assert fill("{{a}}-{{b}}", {"a": "{{b}}", "b": "<"}) == "{{b}}-&lt;"
    for name in ("style", "onclick"):
        refuses(ValueError, "forbids the attribute", element, "p", **{name: "x"})


@pytest.mark.parametrize("shape", [(50, 4), (6, 9), (5, 1)])
def test_principal_components_are_those_of_the_singular_values(shape):
    X = np.random.default_rng(0).normal(size=shape) * np.linspace(3, 1, shape[1])
    left, values, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    found = principal(X)
    for j in range(min(2, *shape)):
        np.testing.assert_allclose(np.abs(found[:, j]), np.abs(left[:, j] * values[j]), rtol=1e-8)
