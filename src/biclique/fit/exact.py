"""The exact way: from a held K to the eigenpairs of its cut, at the order asked for or the one the data ask for."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from biclique._typing import FloatArray, IntArray, Rows
from biclique.exceptions import DisconnectedWarning, RankWarning, SolverWarning, warn_user
from biclique.fit.prepare import Chosen, Prepared, TrainingRows, Vertices, hold, orders_asked
from biclique.fit.rank import warn_about_null_columns
from biclique.gram import GramOperator, SparseGram, dense_bytes, find_parts, make_gram, tiled_bytes
from biclique.kernels import Kernel
from biclique.progress import Progress
from biclique.runtime.arguments import check_random
from biclique.runtime.draws import draw_numbers
from biclique.runtime.namespace import namespace
from biclique.spectral import (
    ASSIGNERS,
    BASIS_BLOCKS,
    DIRECT_BELOW,
    Assignment,
    EigenResult,
    Extension,
    GiveUp,
    NormalizedCut,
    Parts,
    Progressing,
    block_columns,
    graph_eigenpairs,
    parted_eigenpairs,
    scipy_eigenpairs,
    top_eigenpairs,
)
from biclique.spectral.joining import Joined, MostSimilar, Nearness, NearRows, join_parts, parts_cure, shares_of_parts
from biclique.spectral.order import (
    DEAR_PROPOSAL_ROWS,
    PROPOSAL_ROWS,
    SEEN_TOLERANCE,
    TEST_STARTS,
    TRY_ALL,
    Attempt,
    Dust,
    OrderRule,
    least_order,
)

QUICK_TOLERANCE, FINE_TOLERANCE = 1e-3, 1e-8
"""Angles to the true eigenspace that ``eigen_tol="auto"`` asks for: the first is plenty for labels."""


MUCH_DUST = 0.1
"""From this share of the weight on, rows that are like hardly any other are hardly all outliers: a warning."""

PROPOSAL_TOLERANCE = 0.05
"""The same for the sample that proposes an order."""


def auto_tolerance(gram: GramOperator, precision: str) -> float:
    """Fine where passes are cheap (a stored K) or float64 was asked for; quick where every pass computes K anew."""
    return QUICK_TOLERANCE if gram.name in ("tiled", "cuda") and precision != "float64" else FINE_TOLERANCE


def unit_rows(rows: FloatArray) -> FloatArray:
    """Rows divided by their lengths; a zero row stays."""
    xp = namespace(rows)
    lengths = xp.sqrt((rows * rows).sum(1))[:, None]
    return xp.where(lengths > 0, rows / xp.where(lengths > 0, lengths, 1.0), 0.0)  # type: ignore[no-any-return]


def scales_rows(row_normalize: bool | str, assign_labels: str) -> bool:
    """Whether rows are scaled to length 1 before labels are assigned.

    Pivoted QR starts from the longest row: among rows of one length, rounding would choose it.
    """
    return assign_labels != "cluster_qr" if isinstance(row_normalize, str) else bool(row_normalize)


@dataclass(frozen=True)
class SolverOptions:
    """How eigenpairs are found; the defaults of every estimator."""

    name: str | None = None
    tol: float | str = "auto"
    max_passes: int = 100
    precision: str = "auto"
    give_up: GiveUp | None = None
    """Ends the search for eigenvectors that nobody will want."""

    def tolerance(self, gram: GramOperator) -> float:
        """The tolerance as a number, for a solver by passes."""
        return auto_tolerance(gram, self.precision) if isinstance(self.tol, str) else float(self.tol)


@dataclass(frozen=True)
class Spectrum:
    """A fitted embedding: its rows for the vertices, and the function that extends it."""

    training: TrainingRows
    rows: FloatArray  # (n_vertices, n_components), trivial column first
    extension: Extension
    eigenvalues: FloatArray
    residuals: FloatArray

    def embed(self, X: Rows, n_jobs: int | None) -> FloatArray:
        """The embedding of any rows; a training row gets its own row back."""
        X = self.training.match(X)
        return self.embed_vertices(X, self.training.find(X), n_jobs)

    def embed_vertices(self, X: Rows, place: IntArray, n_jobs: int | None) -> FloatArray:
        """The embedding of rows that are vertices ``place``, −1 for new rows; a vertex gets its own row."""
        return np.asarray(self.training.known_or_new(self.rows, place, X, lambda new: self.extend(new, n_jobs)))

    def extend(self, X: Rows, n_jobs: int | None) -> FloatArray:
        """The embedding of new rows, by the closed form."""
        return self.extend_seen(X, n_jobs)[0]

    def extend_seen(self, X: Rows, n_jobs: int | None) -> tuple[FloatArray, np.ndarray]:
        """The embedding of new rows, and which of them are like any training row."""
        found, seen = self.extension.embed_seen(self.training.cross(X, n_jobs))
        return np.pad(found, ((0, 0), (0, self.rows.shape[1] - found.shape[1]))), seen


@dataclass(frozen=True)
class Solved:
    """A cut with its eigenpairs and the embedding made of them."""

    cut: NormalizedCut
    pairs: EigenResult
    spectrum: Spectrum
    parts: Parts | None
    """What no cluster may span, where K falls into parts."""
    joined: Joined | None
    tested: Assignment | None = None
    """The clusters by which the order was tested."""
    left_early: bool = False
    """Whether eigenpairs are unfinished because the order was seen not to do."""


@dataclass(frozen=True)
class ExactFit:
    """An exact fit at the order that was asked for, or found."""

    prepared: Prepared
    solved: Solved
    order: float
    order_reason: str
    dust: float = 0.0
    """The share of the weight in parts of K that are too small for a cluster."""

    def warn(self, n_components: int, n_clusters: int, *, fewer_rows: bool) -> None:
        """Say what is wrong with the parts and the eigenpairs."""
        if self.dust >= MUCH_DUST and n_clusters > 1:
            at = "" if self.prepared.gamma is None else f" at gamma={self.prepared.gamma:.3g}"
            cure = "" if self.prepared.vertices.given else ", use affinity='nearest_neighbors' or a lower gamma"
            warn_user(
                f"{self.dust:.0%} of the rows are like hardly any other row{at}, and form no clusters of their own: if "
                f"they are clusters of lower density{cure or ', make their similarities larger'}.",
                DisconnectedWarning,
            )
        if self.solved.joined is not None:
            gamma, given = self.prepared.gamma, self.prepared.vertices.given
            what = "the matrix" if given else "the kernel"
            cure = "If the wrong ones are, ask for more clusters." if given else parts_cure(gamma)
            self.solved.joined.warn(
                min(n_clusters, n_components),
                f"{what} falls into {{n}} disconnected parts ({{shown}} of {self.prepared.vertices.n} distinct rows)",
                cure,
            )
        warn_about_pairs(self.solved.pairs, self.solved.spectrum.extension, n_components, fewer_rows)


def fit_exact(
    model: Any, chosen: Chosen, n_columns: int, n_clusters: int, options: SolverOptions, progress: Progress
) -> ExactFit:
    """Solve the cut of what was chosen: ``n_columns`` columns, the trivial one among them."""
    rule = asked_rule(model, chosen, n_clusters)
    if len(rule.orders) > 1 and chosen.vertices.n > TRY_ALL and chosen.kernel is not None:
        rule = proposed(model, chosen.kernel, chosen.vertices, rule, n_columns, chosen.plan.dtype, chosen.random)
    search = ExactSearch(model, hold(model, chosen, rule.orders[0], progress), rule, n_columns, options, progress)
    found, reason = search.run(asked=model.order != "auto")
    return ExactFit(search.prepared, found.result, found.order, reason, search.dust)


def asked_rule(model: Any, chosen: Chosen, n_clusters: int) -> OrderRule:
    """The rule for what was chosen.

    With more clusters than about a sixth of the rows, every cluster would have to have nearly as many rows as the mean,
    and every order would cost a full decomposition: order 2 is taken.
    """
    rule = OrderRule.of(chosen.vertices.weights, n_clusters, orders_asked(model))
    if not chosen.plan.iterates and chosen.vertices.n > DIRECT_BELOW:
        rule = replace(rule, orders=rule.orders[:1])
    return rule


def proposed(
    model: Any,
    kernel: Kernel,
    vertices: Vertices,
    rule: OrderRule,
    n_columns: int,
    dtype: Any,
    random: np.random.RandomState,
) -> OrderRule:
    """The rule from the order on that a sample of the distinct rows ends at."""
    seed = int(deepcopy(random).randint(2**31))  # what is drawn after must be what a given order draws
    size = PROPOSAL_ROWS if kernel.cheap else DEAR_PROPOSAL_ROWS
    search = search_some(model, kernel, vertices, rule, n_columns, dtype, seed, size, PROPOSAL_TOLERANCE)
    found, reason = search.run(asked=False)
    left = rule.orders[rule.orders.index(found.order) :]
    n_few = search.prepared.vertices.n
    told = (f"a sample of {n_few} rows proposes {found.order:g} ({reason})",) if len(left) < len(rule.orders) else ()
    return replace(rule, orders=left, told=told)


def search_some(
    model: Any,
    kernel: Kernel,
    vertices: Vertices,
    rule: OrderRule,
    n_columns: int,
    dtype: Any,
    seed: int,
    size: int,
    tol: float | str,
) -> ExactSearch:
    """The search among ``size`` of the distinct rows."""
    some = draw_numbers(vertices.n, size, np.random.RandomState(seed))
    rows, weights = vertices.data[some], vertices.weights[some]
    numbers = np.arange(len(some))
    few = Vertices(rows, weights, numbers, np.empty(0), vertices.numbers[some], False, None)
    held = "tiled" if kernel.cheap else "dense"
    # Small enough to be made whatever the memory limit: all rows were allowed.
    limit = 2 * dense_bytes(size) + tiled_bytes(size, rows.shape[1], size, np.float64)
    gram = make_gram(held, kernel, rows, dtype=dtype, n_jobs=model.n_jobs, memory_limit=limit)
    n_vectors = min(n_columns, few.n) - 1
    prepared = Prepared(
        vertices=few,
        gamma=None,
        random=np.random.RandomState(seed),
        base=gram,
        symmetric=getattr(model, "modelling", "biclique") == "symmetric",
        probe=np.random.RandomState(seed).standard_normal((few.n, block_columns(n_vectors, few.n))),
    )
    # What a cluster must hold is a share of all rows: a sample is to tell what these will do.
    of_sample = replace(OrderRule.of(weights, rule.n_clusters, rule.orders), least=rule.least)
    return ExactSearch(model, prepared, of_sample, n_columns, SolverOptions(tol=tol), Progress(False))


class ExactSearch:
    """Fits of one K at one order after the other."""

    def __init__(
        self,
        model: Any,
        prepared: Prepared,
        rule: OrderRule,
        n_columns: int,
        options: SolverOptions,
        progress: Progress,
    ) -> None:
        self.model, self.prepared, self.rule = model, prepared, rule
        self.n_columns, self.options, self.progress = n_columns, options, progress
        self.n_vectors = min(n_columns, prepared.vertices.n) - 1
        self.seed = int(prepared.random.randint(2**31))
        self._found: IntArray | None = None
        self.n_tests = 0

    def run(self, *, asked: bool) -> tuple[Attempt[Solved], str]:
        """The fit at the order asked for, or at the least one that passes."""
        if not asked:
            found, reason = least_order(self.rule, self.attempt)
            if found.result.left_early:  # the best of those that do not do
                cut = found.result.cut.at_order(found.result.cut.order)
                solved = self._tested(self._solve(cut, found.order, self.options))
                found = replace(found, result=solved)
            return found, reason
        order = self.rule.orders[0]
        solved = self._solve(self._cut(order, None), order, self.options)
        return Attempt(order, 0.0, solved), "as asked for"

    def attempt(self, order: float, last: Attempt[Solved] | None) -> Attempt[Solved]:
        """A fit at an order, left early where its clusters are dust: most orders that are tried are left again."""
        cut = self._cut(order, last)
        watch = _Watch(self, cut)
        solved = self._solve(cut, order, replace(self.options, give_up=watch))
        if watch.refused or watch.smallest < self.rule.least:
            return Attempt(order, watch.smallest, replace(solved, left_early=True), watch.refused)
        return self._attempt(order, self._tested(solved))

    def _attempt(self, order: float, solved: Solved) -> Attempt[Solved]:
        labels = np.zeros(1, dtype=np.intp) if solved.tested is None else solved.tested.labels
        weights = np.ones(1) if solved.tested is None else self.prepared.vertices.weights
        return Attempt(order, self.rule.smallest(labels, weights), solved)

    def _tested(self, solved: Solved) -> Solved:
        """With the clusters by which an order is tested."""
        if self.prepared.vertices.n <= self.rule.n_clusters:
            return solved
        return replace(solved, tested=self.test(solved.spectrum.rows, solved.parts))

    def test(self, rows: FloatArray, parts: Parts | None = None) -> Assignment:
        """The clusters by which an order is tested: unit rows, ten starts."""
        self.n_tests += 1
        return ASSIGNERS["kmeans"](
            unit_rows(rows),
            self.prepared.vertices.weights,
            self.rule.n_clusters,
            n_init=TEST_STARTS,
            random_state=check_random(deepcopy(self.model.random_state)),
            parts=parts,
        )

    @property
    def _block(self) -> int:
        return block_columns(self.n_vectors, self.prepared.vertices.n)

    def _cut(self, order: float, last: Attempt[Solved] | None) -> NormalizedCut:
        if last is None or self.prepared.symmetric:
            return self.prepared.cut(order)
        before = last.result
        cut = before.cut.at_order(order, before.pairs.space, self._block)
        # The basis is large, and has done its work.
        object.__setattr__(before.pairs, "space", None)
        return cut

    def _solve(self, cut: NormalizedCut, order: float, options: SolverOptions) -> Solved:
        parts, joined = None, None
        if order == 2 and self.n_vectors > 0 and not self.prepared.symmetric and self._parts(cut).max() > 0:
            pairs, parts, joined = self._solve_parts(cut, options)
        else:
            pairs = self._solve_whole(cut, self.n_vectors, options, self.prepared.random)
        extension, rows = Extension.fit(cut, pairs, cut.gram.noise)
        missing = self.n_columns - rows.shape[1]
        values, residuals = pairs.values, pairs.residuals
        if joined is not None:  # parts that joined others have no column, but an eigenvalue of 1 each
            others = int(self._parts(cut).max()) + 1 - joined.n_parts
            values, residuals = (np.append(x, np.full(others, own)) for x, own in ((values, 1.0), (residuals, 0.0)))
            ranked = np.argsort(-values, kind="stable")[: len(pairs.values)]
            values, residuals = values[ranked], residuals[ranked]
        spectrum = Spectrum(
            training=self.prepared.training(cut),
            rows=np.pad(rows, ((0, 0), (0, missing))),
            extension=extension,
            eigenvalues=np.pad(values, (0, missing)),
            residuals=np.pad(residuals, (0, missing)),
        )
        return Solved(cut, pairs, spectrum, parts, joined)

    def _parts(self, cut: NormalizedCut) -> IntArray:
        """The parts that K falls into, searched for once."""
        if self._found is None:
            random = np.random.RandomState(self.seed)
            self._found = find_parts(self.prepared.base, cut.degrees, cut.weights, random, columns=self._block)
        return self._found

    @property
    def dust(self) -> float:
        """The share of the weight in parts that are too small for a cluster, where parts were searched for."""
        if self._found is None or self._found.max() == 0:
            return 0.0
        weights = self.prepared.vertices.weights
        shares = np.bincount(self._found, weights) / weights.sum()
        return float(shares[shares < self.rule.least].sum())

    def _solve_whole(
        self, cut: NormalizedCut, k: int, options: SolverOptions, random: np.random.RandomState
    ) -> EigenResult:
        if k > 0 and is_graph(cut.gram) and options.name in (None, "auto", "amg") and self._parts(cut).max() == 0:
            return solve_graph(cut, k, options, random, self.progress)
        blocks = self.prepared.basis_blocks
        return solve_cut(cut, k, options, random, self.progress, basis_blocks=blocks, keep_space=True)

    def _solve_parts(self, cut: NormalizedCut, options: SolverOptions) -> tuple[EigenResult, Parts | None, Joined]:
        """The eigenpairs of parts, and which rows belong to which; see ``cluster/_parts.py``."""
        vertices, k = self.prepared.vertices, self.rule.n_clusters
        near: Nearness = MostSimilar(vertices.data, vertices.weights) if vertices.given else NearRows(vertices.data)
        joined = join_parts(self._parts(cut), vertices.weights, k, min(k, self.n_columns), near)

        def solve(members: IntArray, wanted: int) -> EigenResult:
            random = np.random.RandomState(self.seed)
            own = cut.restricted(self.prepared.base.restricted(members), members)
            if is_graph(own.gram) and options.name in (None, "auto", "amg"):
                return solve_graph(own, wanted, options, random, self.progress)
            watch = options.give_up.inside(own) if isinstance(options.give_up, _Watch) else None
            return solve_cut(own, wanted, replace(options, give_up=watch), random, self.progress, keep_space=True)

        none = np.empty(0, dtype=np.intp)
        cores = [joined.core(part) if joined.whole[part] else none for part in range(joined.n_parts)]
        found = parted_eigenpairs(cut, joined.part_of, cores, self.n_vectors, solve)
        if self.n_columns < k:
            return found.pairs, None, joined  # too few columns to tell what each part's clusters are
        shares = shares_of_parts(found.values_of_parts, k)
        return found.pairs, Parts(joined.part_of, tuple(shares), joined.like(near)), joined


class _Watch:
    """Looks at eigenvectors while they are being found, and ends that where they are of dust."""

    def __init__(self, search: ExactSearch, cut: NormalizedCut, *, whole: bool = True) -> None:
        self.search, self.whole = search, whole
        self.refused = ""
        self.smallest = np.inf
        self._cut, self._dust = cut, Dust(search.rule, cut, float(search.prepared.vertices.weights.sum()))
        self._tested = False
        self._owner: _Watch = self

    def inside(self, cut: NormalizedCut) -> _Watch:
        """The same for the cut of a part, whose clusters say nothing by themselves."""
        other = _Watch(self.search, cut, whole=False)
        other._owner = self
        return other

    def __call__(self, now: Progressing, vectors: Callable[[], FloatArray]) -> bool:
        self._owner.refused = self._dust(now, vectors)
        if self._owner.refused:
            self._owner.smallest = 0.0
            return True
        rule, cut = self.search.rule, self._cut
        if self.whole and now.share <= SEEN_TOLERANCE and not self._tested:
            self._tested = True
            rows = np.column_stack([cut.trivial, vectors()]) / np.sqrt(cut.weights)[:, None]
            smallest = rule.smallest(self.search.test(rows).labels, self.search.prepared.vertices.weights)
            self.smallest = smallest if smallest < rule.least else np.inf
        return self.smallest < rule.least


def is_graph(gram: GramOperator) -> bool:
    """Whether multigrid can solve it: a sparse matrix without negative entries."""
    return isinstance(gram, SparseGram) and gram.nonnegative


def solve_graph(
    cut: NormalizedCut, k: int, options: SolverOptions, random: np.random.RandomState, progress: Progress
) -> EigenResult:
    """The k leading eigenpairs of a connected graph, by multigrid."""
    tol = QUICK_TOLERANCE if isinstance(options.tol, str) else float(options.tol)
    return graph_eigenpairs(cut, k, tol=tol, max_iter=options.max_passes, random_state=random, report=progress.passed)


def solve_cut(
    cut: NormalizedCut,
    k: int,
    options: SolverOptions,
    random: np.random.RandomState,
    progress: Progress,
    *,
    basis_blocks: int = BASIS_BLOCKS,
    keep_space: bool = False,
) -> EigenResult:
    """The k leading eigenpairs of B, by the solver that was asked for."""
    noise = cut.gram.noise
    if k < 1:
        return EigenResult.none(cut.trivial)
    tol = options.tolerance(cut.gram)
    if options.name in ("arpack", "lobpcg"):
        return scipy_eigenpairs(
            cut,
            k,
            options.name,
            tol=tol,
            max_iter=options.max_passes,
            start=cut.start,
            deflate=cut.trivial,
            random_state=random,
            noise=noise,
        )
    return top_eigenpairs(
        cut,
        k,
        tol=tol,
        max_iter=options.max_passes,
        noise=noise,
        start=cut.start if cut.start.shape[1] else None,
        start_image=cut.start_image if cut.start.shape[1] else None,
        deflate=cut.trivial,
        basis_blocks=basis_blocks,
        random_state=random,
        report=progress.passed,
        keep_space=keep_space,
        give_up=options.give_up,
    )


def warn_unless_converged(pairs: EigenResult) -> None:
    """Say how many eigenpairs missed the tolerance, and by how much."""
    if not pairs.converged:
        above = int((pairs.residuals > pairs.target).sum())
        warn_user(
            f"{above} of {len(pairs.values)} eigenpairs above tol (worst residual {pairs.residuals.max():.1e} > "
            f"{pairs.target:.1e}) after {pairs.n_passes} passes; raise max_iter or eigen_tol.",
            SolverWarning,
        )


def warn_about_pairs(pairs: EigenResult, extension: Extension, n_components: int, enough_said: bool = False) -> None:
    """Say what is wrong with eigenpairs: not converged, negative, or too few."""
    warn_unless_converged(pairs)
    negative = int((pairs.values[extension.informative] < 0).sum())
    if negative:
        warn_user(
            f"{negative} of {len(pairs.values)} eigenvalues are negative (lowest {pairs.values.min():.2g}): the "
            "kernel's contraction is indefinite, and those columns set apart what is similar; ask for fewer clusters, "
            "or use another affinity or order.",
            RankWarning,
        )
    if not enough_said:
        warn_about_null_columns(extension.informative, n_components)
