"""What the site is built from. ``make docs`` finds dead links, missing titles and tables of other records."""

import doctest
import importlib.util
import inspect
import json
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import biclique

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


api_pages, tables, conf, record, release_notes = (
    load(ROOT / name)
    for name in (
        *("docs/api_pages.py", "docs/tables.py", "docs/conf.py"),
        *("benchmarks/record.py", ".ci/release_notes.py"),
    )
)


def test_every_public_module_has_its_page():
    public = {f"biclique.{name}" for name in biclique._MODULES}
    assert set(api_pages.MODULES) == {"biclique", *public}


def test_every_public_name_has_its_page_and_no_other(tmp_path):
    (tmp_path / "biclique.Gone.rst").write_text("Gone")
    api_pages.write(tmp_path)
    assert not (tmp_path / "biclique.Gone.rst").exists()
    for module, names in api_pages.documented().items():
        listed = (tmp_path / f"{module}.rst").read_text(encoding="utf-8")
        for name, full in names:
            if (tmp_path / f"{full}.rst").exists():
                assert f"<{full}>`" in listed
            else:
                assert f".. py:data:: {name}\n" in listed
    assert (tmp_path / "biclique.BicliqueSpectralClustering.rst").exists()
    assert not (tmp_path / "biclique.cluster.BicliqueSpectralClustering.rst").exists()  # one page is enough


def examples_as_rendered():
    """The examples of every public class, method and function, as the site shows them."""
    for names in api_pages.documented().values():
        for full in sorted({full for _, full in names}):
            module, _, name = full.rpartition(".")
            thing = getattr(import_module(module), name)
            members = vars(thing).values() if inspect.isclass(thing) else ()
            for found in (thing, *members):
                lines = (inspect.getdoc(found) or "").splitlines() if callable(found) else []
                conf.plain_text(None, "", full, found, None, lines)
                yield full, doctest.DocTestParser().get_doctest("\n".join(lines), {}, full, None, 0)


def test_examples_of_the_reference_can_be_pasted():
    shown = [(full, test) for full, test in examples_as_rendered() if test.examples]
    assert any("labels_" in example.source for _, test in shown for example in test.examples)
    for full, test in shown:
        found = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(test)
        assert found.failed == 0, full


ESTIMATORS = sorted(
    {
        full
        for module, names in api_pages.documented().items()
        for name, full in names
        if inspect.isclass(found := getattr(import_module(module), name)) and issubclass(found, BaseEstimator)
    }
)


@pytest.mark.parametrize("full", ESTIMATORS)
def test_diagrams_of_estimators_link_nowhere_while_nothing_is_published(full):
    module, _, name = full.rpartition(".")
    model = getattr(import_module(module), name)()
    assert model._get_doc_link() == ""
    assert "biclique.readthedocs" not in model._repr_html_()


def listed(folder, name):
    """What a table of contents lists, as the site has it."""
    source = [(folder / f"{name}.md").read_text(encoding="utf-8")]
    conf.list_pages(None, name, source)
    return [line for line in source[0].splitlines() if re.fullmatch(r"[a-z-]+", line)]


def test_every_page_is_in_one_table_of_contents():
    tables = [page for name in ("index", "guide", "project") for page in listed(ROOT / "docs", name)]
    assert sorted(tables) == sorted(page.stem for page in ROOT.glob("docs/*.md") if page.stem != "index")


def test_pages_that_nobody_listed_are_added_and_missing_ones_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(conf, "HERE", tmp_path)
    for name in ("new", "order"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n")
    (tmp_path / "guide.md").write_text("# Guide\n\n```{toctree}\norder\nmissing\n(all others)\n```\n")
    (tmp_path / "index.md").write_text("# Index\n\n```{toctree}\nguide\n```\n")
    assert listed(tmp_path, "guide") == ["order", "new"]


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 100
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=lambda page: page.name)
def test_pages_have_wrapped_lines_and_no_acceptance_notes(page):
    """Tables and code may be wider."""
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"\bbar\b.{0,30}\bmet\b|: met\b|\bcommit [0-9a-f]{7}\b|product (took )?\d\.\d+ s", text)
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines()
    assert not [line for line in prose if len(line) > 120 and not line.startswith(("|", "    "))]


PLACE = re.compile(r"<!-- (?:record|numbers): (\S+).*?<!-- end -->", re.DOTALL)
BENCHMARK = re.compile(r"`python (?:benchmarks|docs|examples)/\w+\.py")
MEASURED = re.compile(r"\d\.\d|\d (?:s|MB|GB|%) ")
CELL = r" *-?(?:\d+\.\d+|\d+(?:\.\d+)? ?%) *\|"
TWO_CELLS = re.compile(rf"^\|.*\|{CELL}{CELL}")


def marked(page):
    """The text of a page. What `biclique reproduce` writes is the text of its record as a whole."""
    text = page.read_text(encoding="utf-8")
    return f"<!-- numbers: reproduction -->\n{text}<!-- end -->" if page.name == "reproduction.md" else text


QUOTED = sorted({name for page in PAGES for name in PLACE.findall(marked(page))})


@pytest.mark.parametrize("name", QUOTED)
def test_no_page_quotes_a_record_of_older_code(name):
    """``record.py`` says how much may change. Then ``record.py NAME --again`` runs the command of the record."""
    measured = json.loads((record.RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    share = record.changed(measured)
    assert share <= record.OLD, f"{share:.0%} of the lines are other ones: python benchmarks/record.py {name} --again"


def test_every_record_is_quoted():
    assert sorted(path.stem for path in record.RECORDS.glob("*.json")) == QUOTED


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_measured_numbers_were_printed(page):
    """A paragraph that names a benchmark, or a table with two measured numbers in a line, is in a record's place."""
    text = marked(page)
    assert not tables.unprinted(text)
    rest = re.sub(r"```.*?```", "", PLACE.sub("", text), flags=re.DOTALL)
    for paragraph in rest.split("\n\n"):
        lines = [re.sub(r"`[^`]*`", "", line) for line in paragraph.splitlines()]
        assert not any(TWO_CELLS.search(line) for line in lines), paragraph
        assert not (BENCHMARK.search(paragraph) and any(MEASURED.search(line) for line in lines)), paragraph


def test_a_number_that_no_record_printed_is_found(tmp_path, monkeypatch):
    found = {"tables": record.tables_of(PRINTED), "text": record.text_of(PRINTED)}
    (tmp_path / "a.json").write_text(json.dumps(found))
    monkeypatch.setattr(tables, "RECORDS", tmp_path)
    page = "7.7 <!-- numbers: a -->\nOf 4,000 rows: 1.5 s or 2 s, `k=9` [2](x8.md)\n{}<!-- end -->"
    assert tables.unprinted(page.format("")) == []
    assert tables.unprinted(page.format("1.6 −2 10⁴\n")) == ["1.6 (a)", "-2 (a)", "1E+4 (a)"]


def test_a_record_of_this_code_is_new_and_one_without_digests_is_old():
    now = {"source": record.source()}
    assert record.changed(now) == 0
    assert record.changed({"source": {**now["source"], "fit/exact.py": ""}}) > 0
    assert record.changed({}) == 1


def test_a_record_is_compared_with_the_code_that_it_measures():
    code = ["selection", "fit/exact.py"]
    found = record.source(code)
    assert {"selection/layers.py", "fit/exact.py"} <= set(found)
    assert "fit/solve.py" not in found
    assert record.changed({"code": code, "source": found}) == 0
    assert record.changed({"code": code, "source": {**found, "fit/solve.py": ""}}) == 0
    assert record.changed({"code": code, "source": {**found, "fit/exact.py": ""}}) > record.OLD


def test_docstrings_comments_and_line_breaks_do_not_age_a_record():
    before = record.functions("A = 1\n\n\ndef f(x):\n    return x  # same\n\n\ndef g(x):\n    return 2 * x\n")
    after = record.functions(
        'A = 1\n"""One."""\n\ndef f(x):\n    """x"""\n    return x\ndef g(x):\n    return (\n3 * x)\n'
    )
    assert list(before.values()) == [1, 2, 2]
    assert [digest in before for digest in after] == [True, True, False]


PRINTED = """
4000 rows

| name | seconds | bar |
| --- | ---: | --- |
| ours | 1.5 | 2: met |
| |K||V| theirs | failed: no memory |
""".replace("|K||V|", r"\|K\|\|V\|")


def test_a_record_has_what_a_benchmark_printed():
    (found,) = record.tables_of(PRINTED)
    assert found["title"] == "4000 rows"
    assert record.text_of(PRINTED) == ["4000 rows"]
    assert found["columns"] == ["name", "seconds", "bar"]
    assert found["rows"] == [["ours", "1.5", "2: met"], ["|K||V| theirs", "failed: no memory"]]
    shown = tables.table(**found)
    assert "met" not in shown
    assert r"| \|K\|\|V\| theirs | failed: no memory |" in shown
    assert record.tables_of(shown)[0]["rows"][0] == ["ours", "1.5"]
    assert tables.table("", ["rows", "name"], [["1,000", "a"]]).splitlines()[1] == "| ---: | --- |"


def test_release_notes_are_those_of_the_version():
    changes = "# Changes\n\n## 0.2.0\n\n- new\n\n### Part\n\n- more\n\n## 0.1.0 (2026)\n\n- old\n"
    assert release_notes.notes(changes, "0.2.0") == "- new\n\n### Part\n\n- more"
    assert release_notes.notes(changes, "0.1.0") == "- old"
    with pytest.raises(SystemExit, match=r"no version 0\.3: it has 0\.2\.0, 0\.1\.0"):
        release_notes.notes(changes, "0.3")
    assert release_notes.notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), biclique.__version__)
