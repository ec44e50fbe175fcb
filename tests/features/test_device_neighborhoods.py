"""Neighbourhoods on a device, here PyTorch's CPU, against the definition and against the host."""

import os
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from biclique.features.neighborhoods import NeighborhoodMap, joined_components
from biclique.neighbors.index import nearest_row
from tests import oracles

torch = pytest.importorskip("torch", reason="needs torch: make test-torch")

INTERPRETED = not torch.cuda.is_available()
if INTERPRETED:
    os.environ["TRITON_INTERPRET"] = "1"

from biclique.features import device_neighborhoods  # noqa: E402
from biclique.features.device_neighborhoods import DeviceSearch, nearest_landmark, smallest  # noqa: E402

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
RANDOM = np.random.default_rng(0)
GRID = np.stack(np.meshgrid(*[np.arange(4.0)] * 3), axis=-1).reshape(-1, 3)
DATA = {
    "normal": (RANDOM.normal(size=(300, 3)), RANDOM.normal(size=(90, 3))),
    "many": (RANDOM.normal(size=(200, 5)), RANDOM.normal(size=(1500, 5))),
    "grid": (GRID, GRID),
    "far groups": (np.repeat(1e5 * GRID[:3], 20, axis=0) + 1e-4 * RANDOM.normal(size=(60, 3)),) * 2,
    "tenths in float32": ((GRID / 10).astype(np.float32), (GRID / 10).astype(np.float32)),
    "few": (RANDOM.normal(size=(9, 2)), RANDOM.normal(size=(4, 2))),
}


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


def needs_triton(device):
    """Triton's kernels run on a GPU, or in its interpreter if there is none."""
    if find_spec("triton") is None or (device == "cpu" and not INTERPRETED):
        pytest.skip("needs triton and its interpreter: make test-torch")


@pytest.fixture(params=[False, True], ids=["product", "fused"])
def fused(request, device, monkeypatch):
    """A product and a tournament, or Triton's kernels."""
    if request.param:
        needs_triton(device)
    monkeypatch.setattr(device_neighborhoods, "has_triton", lambda like: request.param)
    return request.param


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("r", [1, 2, 7])
def test_members_are_those_of_the_definition(name, r, device, fused, monkeypatch):
    X, Z = DATA[name]
    monkeypatch.setattr(device_neighborhoods, "PRODUCT_ENTRIES", 5000)  # several blocks
    own = NeighborhoodMap(Z, r)
    found = own.landmark_numbers(torch.tensor(X, device=device)).cpu().numpy()
    assert (np.diff(found, axis=1)[found[:, 1:] < own.size] > 0).all()
    sets = [set(row[row < own.size].tolist()) for row in found]
    assert sets == [set(np.flatnonzero(row).tolist()) for row in own.columns(X).toarray()]
    if name not in ("tenths in float32", "far groups"):
        assert sets == oracles.neighborhood_members(X, Z, own.n_neighbors)


@pytest.mark.parametrize("r", [20, 45])
def test_many_landmarks_of_few(r, device, fused):
    """More of them than the fused search has groups: none is taken twice."""
    X, Z = DATA["normal"]
    own = NeighborhoodMap(Z, r)
    found = own.landmark_numbers(torch.tensor(X[:40], device=device)).cpu().numpy()
    assert [set(row.tolist()) for row in found] == oracles.neighborhood_members(X[:40], Z, r)


@pytest.mark.parametrize("name", DATA)
def test_what_is_certain_is_so(name, device, fused):
    X, Z = (given.astype(float) for given in DATA[name])
    near, certain = DeviceSearch(Z, torch.tensor(X, device=device)).nearest_set(
        torch.tensor(X, device=device), 3, 1e-9, 0
    )
    gaps = cdist(X, Z)
    for i in np.flatnonzero(certain.cpu().numpy()):
        own = np.isin(np.arange(len(Z)), near[i].cpu().numpy())
        assert own.sum() == 3
        assert gaps[i, ~own].min(initial=np.inf) > gaps[i, own].max() * (1 + 1e-9)
    if name in ("normal", "many", "few"):
        assert certain.all()
    tensor = torch.zeros(1, device=device)
    np.testing.assert_array_equal(nearest_landmark(X, Z, tensor), nearest_row(None, X, Z, 1))


@pytest.mark.parametrize(("n", "p", "d", "count"), [(130, 128, 16, 1), (37, 1000, 5, 8), (5, 260, 40, 12)])
def test_the_fused_search_finds_the_smallest(n, p, d, count, device):
    """Their numbers are those of a product in float64, up to the rounding of float32, and no landmark comes twice."""
    needs_triton(device)
    from biclique.device.triton_nearest import padded_landmarks, smallest_bounds

    torch.manual_seed(0)
    X, Z = torch.randn((n, d), device=device), torch.randn((p, d), device=device, dtype=torch.float64)
    q = (Z * Z).sum(1)
    low, near = smallest_bounds(X, *padded_landmarks(Z, q), count)
    numbers = q - 2 * X.double() @ Z.T
    truth = torch.topk(numbers, count, largest=False).values
    for found in (low, torch.gather(numbers, 1, near.long())):
        np.testing.assert_allclose(found.cpu(), truth.cpu(), atol=1e-6 * float(q.max()))
    assert all(len(set(row.tolist())) == count for row in near)


@pytest.mark.parametrize(("n", "count"), [(64, 1), (64, 64), (512, 3), (4096, 8), (4160, 100)])
def test_a_tournament_finds_the_smallest(n, count, device):
    values = torch.randn((n, 50), device=device)
    low, places = smallest(values, count)
    truth = torch.sort(values, dim=0).values[:count].T
    assert torch.equal(low, truth)
    assert torch.equal(torch.gather(values.T, 1, places), truth)


@pytest.mark.parametrize("name", ["normal", "grid"])
@pytest.mark.parametrize("spread", [1.0, 1e30])
def test_sums_and_products_are_those_of_the_host(name, spread, device, monkeypatch):
    """Sums of weights over many orders of magnitude keep twelve digits of every one."""
    monkeypatch.setattr(device_neighborhoods, "KEYS", 1000)  # several blocks
    X, Z = DATA[name]
    own = NeighborhoodMap(Z, 5)
    here, there = own.columns(X), own.columns(torch.tensor(X, device=device))
    near = X[:, 0] > np.median(X[:, 0])
    w = np.random.default_rng(1).uniform(1, 2, len(X)) * np.where(near, 1.0, 1 / spread)
    V = np.random.default_rng(2).normal(size=(own.size, 3))
    at = [torch.tensor(array, device=device) for array in (w, np.sqrt(w), V)]
    np.testing.assert_allclose(there.sums(at[0]).cpu(), here.T @ w, rtol=1e-11)
    gram = there.gram(at[1]).cpu().numpy()
    np.testing.assert_allclose(gram, (here.T @ (w[:, None] * here.toarray())), rtol=1e-11)
    np.testing.assert_allclose((there @ at[2]).cpu(), here @ V, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose((abs(there) @ at[2][:, 0]).cpu(), here @ V[:, 0], rtol=1e-12, atol=1e-14)
    order = torch.randperm(len(X), device=device)  # whole numbers have no rounding: any order gives the same bits
    shuffled = own.columns_of(there.near[order]).gram(at[1][order]).cpu().numpy()
    np.testing.assert_allclose(shuffled, gram, rtol=0 if spread == 1 else 1e-15)
    np.testing.assert_array_equal(joined_components(there.links()), joined_components(here))
