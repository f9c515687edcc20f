"""What version 0.2 wrote, kept as it wrote it."""
