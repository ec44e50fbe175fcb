"""Models of points as hypergraphs."""
