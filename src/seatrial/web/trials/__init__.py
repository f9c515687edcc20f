"""What pages of trials show: the accounts of each, kept and folded on as its journal grows."""
