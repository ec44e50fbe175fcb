"""Threads, memory limits, array namespaces, checks of arguments."""
