"""Ways to store or compute K: one class per file, one contract for all."""
