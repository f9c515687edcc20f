"""What pages of trials show: the history of each, kept and folded on as its journal grows."""
