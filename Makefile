# make demo | test | test-lower-cpu | test-oldest | test-hypernetx | test-torch | test-browser | golden | check | docs | docs-full | smoke | release-notes | bench | dist | clean: each sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
# Tests start many processes: each would compile every module again if none may write what it compiled.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test test-lower-cpu test-oldest test-hypernetx test-torch test-browser golden check docs docs-full smoke release-notes bench dist clean

$(VENV)/.base: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python .ci/install.py --editable '.[tables]'
	touch $@

$(VENV)/.test: $(VENV)/.base
	$(BIN)/python .ci/install.py --group test
	touch $@

$(VENV)/.check: $(VENV)/.test
	$(BIN)/python .ci/install.py --group check
	touch $@

demo: $(VENV)/.base  ## cluster wine from the command line
	$(BIN)/biclique cluster wine -k 3

test: $(VENV)/.test  ## the whole test suite
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# What rounding can change: these run again on other CPUs and with other versions.
SENSITIVE := -m "not once" tests/runtime tests/kernels tests/features tests/neighbors tests/device tests/gram \
	tests/spectral tests/multiway tests/fit tests/cluster --ignore=tests/cluster/test_bad_input.py \
	--ignore=tests/fit/test_settings.py --ignore=tests/fit/test_drills.py \
	--ignore=tests/cluster/test_sklearn_checks.py \
	--ignore=tests/cluster/test_consensus.py --ignore=tests/cluster/test_selecting_count.py

test-lower-cpu: $(VENV)/.test  ## the numerically sensitive tests as on a CPU one level below this one
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python .ci/lower_cpu.py -m pytest -n $(JOBS) --dist worksteal $(SENSITIVE)

# NumPy 1.26 has wheels for Python 3.11 and 3.12.
$(VENV)-oldest/.test: pyproject.toml constraints-oldest.txt
	test -x $(VENV)-oldest/bin/python || $(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python .ci/install.py --editable . --group oldest --constraint constraints-oldest.txt
	touch $@

test-oldest: $(VENV)-oldest/.test  ## the same but for kernels and multiway, and tests of files, with the oldest supported versions
	@$(VENV)-oldest/bin/python -c "import numpy, scipy, sklearn, pyarrow, zarr; print('Oldest versions: NumPy', \
		numpy.__version__, 'SciPy', scipy.__version__, 'scikit-learn', sklearn.__version__, \
		'pyarrow', pyarrow.__version__, 'zarr', zarr.__version__)"
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(VENV)-oldest/bin/python -m pytest -n $(JOBS) --dist worksteal \
		$(filter-out tests/kernels tests/multiway,$(SENSITIVE)) tests/tables tests/rows tests/fuzz/test_readers.py

# HyperNetX holds pandas below 3, so it has an environment of its own.
$(VENV)-hypernetx/.test: pyproject.toml
	test -x $(VENV)-hypernetx/bin/python || $(PYTHON) -m venv $(VENV)-hypernetx
	$(VENV)-hypernetx/bin/python .ci/install.py --editable . --group hypernetx
	touch $@

test-hypernetx: $(VENV)-hypernetx/.test  ## conversion and clustering with HyperNetX and pandas 2
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(VENV)-hypernetx/bin/python -m pytest -n $(JOBS) --dist worksteal \
		tests/hypergraph/files/test_convert.py tests/hypergraph/files/test_files.py \
		tests/cluster/test_hypergraph_clustering.py

# torch's build without CUDA is small; the interpreter of Triton stands in for a GPU.
TORCH ?= torch==2.13.0
$(VENV)-torch/.test: pyproject.toml
	test -x $(VENV)-torch/bin/python || $(PYTHON) -m venv $(VENV)-torch
	$(VENV)-torch/bin/python .ci/install.py "$(TORCH)" --editable . --group torch
	touch $@

test-torch: $(VENV)-torch/.test  ## the same on torch's CPU, and the GPU's kernel in Triton's interpreter
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(VENV)-torch/bin/python -m pytest -n $(JOBS) --dist worksteal \
		tests/gram/test_operators.py tests/device tests/spectral/test_on_torch.py tests/fit/test_on_device.py tests/fit/test_neighborhood_cut.py \
		tests/rows tests/fit/test_fitted.py tests/models/test_saving.py::test_of_a_device_the_host_s_copy_is_saved

# The page of a report in a real browser. Where Chromium is not installed, and cannot be, the tests are skipped.
$(VENV)-browser/.test: pyproject.toml
	test -x $(VENV)-browser/bin/python || $(PYTHON) -m venv $(VENV)-browser
	$(VENV)-browser/bin/python .ci/install.py --editable . --group browser
	touch $@

test-browser: $(VENV)-browser/.test  ## reports in Chromium, without a window
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(VENV)-browser/bin/python -m pytest -rs tests/report/test_browser.py

golden: $(VENV)/.test $(VENV)-torch/.test  ## what the working tree changes in many fits: make golden BASE=<commit>
	$(BIN)/python -m tests.golden --base $(BASE) --jobs $(JOBS)
	$(BIN)/python -m tests.golden --base $(BASE) --jobs $(JOBS) --only "device*" --python $(VENV)-torch/bin/python

check: $(VENV)/.check  ## style, types, layers, rules of the house, doctests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python .ci/house.py
	$(BIN)/python -m pytest --doctest-modules src/biclique README.md docs --doctest-glob="*.md" \
		--ignore-glob="docs/*.py"

$(VENV)/.docs: $(VENV)/.base
	$(BIN)/python .ci/install.py --group docs
	touch $@

docs: $(VENV)/.docs  ## the site in build/docs, with the gallery scripts that take seconds; warnings are errors
	OPENBLAS_NUM_THREADS=1 $(BIN)/python docs/pages.py --check
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going --quiet --jobs $(JOBS) docs build/docs
	$(BIN)/python docs/check_site.py build/docs

docs-full:  ## the same with every gallery script
	BICLIQUE_DOCS=full $(MAKE) docs

bench: $(VENV)/.base  ## speed and memory against scikit-learn, side by side
	$(BIN)/python benchmarks/exact.py

dist: $(VENV)/.base  ## wheel and source archive in dist/, of what is committed
	$(BIN)/python -m pip install --quiet build==1.6.1
	rm -rf dist build/committed && mkdir -p build/committed
	git archive HEAD | tar -x -C build/committed
	$(BIN)/python -m build --outdir dist build/committed
	rm -rf build/committed

PYTHONS ?= python3.11 python3.12 python3.13
smoke: dist  ## wheel and source archive, each installed into an empty environment and used: make smoke PYTHONS="python3.13"
	set -e; for python in $(PYTHONS); do for built in "$$PWD"/dist/*.whl "$$PWD"/dist/*.tar.gz; do \
		rm -rf build/smoke && $$python -m venv build/smoke && build/smoke/bin/python -m pip install --quiet "$$built[tables]"; \
		(cd build/smoke && ./bin/python ../../.ci/smoke.py); done; done
	rm -rf build/smoke

release-notes:  ## what CHANGELOG.md says about the current version
	@$(PYTHON) .ci/release_notes.py

clean:
	rm -rf docs/api docs/gallery $(VENV) $(VENV)-oldest $(VENV)-hypernetx $(VENV)-torch $(VENV)-browser dist build .pytest_cache .hypothesis .mypy_cache .ruff_cache
