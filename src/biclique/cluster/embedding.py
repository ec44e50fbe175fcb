"""The spectral embedding as a transformer."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from biclique._typing import FloatArray
from biclique.cluster.estimator import SpectralEstimator
from biclique.fit.settings import CONSTRAINTS, Check
from biclique.runtime.arguments import check_count, check_flag


@dataclass(eq=False, repr=False)
class BicliqueSpectralEmbedding(SpectralEstimator):
    """Spectral embedding by the order-m normalised cut of a kernel.

    The columns are the leading eigenvectors of B = S^(−1/2) (K − δδᵀ/ρ) S^(−1/2) with the degrees shrunk toward
    their mean, S = (2/m) δ + (1 − 2/m) δ̄: the eigenvectors of the biclique kernel's contracted Gram matrix K^(m),
    normalised (Algorithm 1 of Saito, AAAI-22), which is never formed.

    Parameters
    ----------
    n_components : int, default=2
        Columns of the embedding.
    order : "auto" or float from 2 to infinity, default="auto"
        Order m of the hypergraph; any real number. Order 2 is the ordinary normalised cut, ``numpy.inf`` spectral
        modularity. "auto" is the order that ``BicliqueSpectralClustering`` takes for as many clusters as there are
        columns, the trivial one included.
    drop_first : bool, default=True
        Leave out the trivial column √S, as ``sklearn.manifold.SpectralEmbedding`` does. With False the columns are
        those in which ``BicliqueSpectralClustering`` with as many clusters works.
    modelling, affinity, gamma, degree, coef0, kernel_params, n_neighbors, eigen_solver, eigen_tol, gram, rank, \
precision, device, n_jobs, random_state, verbose :
        As in ``BicliqueSpectralClustering``.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
    affinity_matrix_ : array or CSR matrix of shape (n_samples, n_samples)
        K, if it was stored.
    eigenvalues_, residuals_ : ndarray
        Of B, one for every column but the trivial one.
    gamma_, order_, order_reason_, gram_, gram_reason_, precision_, rank_, approximation_, n_passes_ :
        What was chosen, how good an approximation is, and how many passes over K it took.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from biclique import BicliqueSpectralEmbedding
    >>> BicliqueSpectralEmbedding(n_components=2).fit_transform(load_iris().data).shape
    (150, 2)
    """

    _constraints: ClassVar[Mapping[str, Check]] = {**CONSTRAINTS, "n_components": check_count, "drop_first": check_flag}

    n_components: int = 2
    _: KW_ONLY
    drop_first: bool = True

    def _n_columns(self) -> int:
        return int(self.n_components + bool(self.drop_first))

    def _output(self, embedding: FloatArray) -> FloatArray:
        return embedding[:, 1:] if self.drop_first else embedding
