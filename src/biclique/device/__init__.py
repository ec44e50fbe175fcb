"""Tiles on PyTorch and Triton."""
