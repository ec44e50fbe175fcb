"""The search for neighbours, graphs of rows, and their parts."""
