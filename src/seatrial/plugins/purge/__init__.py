"""Purge of scratch file systems: by a policy, from a plan, with a record of each act."""
