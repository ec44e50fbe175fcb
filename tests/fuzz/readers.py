"""The readers that are tried, with whole files of each kind."""

from tests.fuzz import seeds_of_graphs, seeds_of_models, seeds_of_tables
from tests.fuzz.campaign import Reader

READERS: dict[str, Reader] = {**seeds_of_tables.READERS, **seeds_of_graphs.READERS, **seeds_of_models.READERS}
