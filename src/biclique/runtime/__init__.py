"""Threads, free memory, arrays of NumPy and PyTorch, checks of arguments."""
