"""What a run wrote, for its page: files opened without following links, read within bounds."""
