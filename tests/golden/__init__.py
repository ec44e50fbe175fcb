"""Golden results: what many small fits give now, so that a change of the code shows what it changes.

Two uses:

- ``python -m tests.golden --base COMMIT`` runs every case in that commit and in the working tree, and compares.
- ``test_golden.py`` runs a few cases and compares with ``stored.json``, on any CPU.

Cases import public names of the package alone: internal modules may move.
"""
