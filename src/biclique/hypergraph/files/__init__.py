"""Hypergraphs in files and in other packages."""
