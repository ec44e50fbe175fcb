"""Φ with K ≈ ΦΦᵀ: landmarks, Fourier, sketches, exact maps."""
