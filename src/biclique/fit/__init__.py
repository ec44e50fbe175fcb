"""Settings → fit → Fitted: the one sentence, once."""
