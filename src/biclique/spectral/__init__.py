"""S and B of a Gram operator and an order, eigenpairs, labels, and the extension to new points."""
