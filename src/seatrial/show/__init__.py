"""What people are shown: each answer is told once, as a ``Page``, and rendered for every medium."""
