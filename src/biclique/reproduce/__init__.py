"""The paper's tables and figures, as resumable runs."""
