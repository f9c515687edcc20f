"""What a server holds between two requests: its caches, and the work done in the background."""
