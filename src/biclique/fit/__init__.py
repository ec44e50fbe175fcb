"""Settings → Plan → Fitted: the one sentence, once."""
