"""Golden results: what many small fits give, so that a change of the code shows what it changes.

``python -m tests.golden --base COMMIT`` runs every case in that commit and in the working tree, and compares.

Cases import public names of the package alone: internal modules may move.
"""
