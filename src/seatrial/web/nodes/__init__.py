"""Nodes on pages: their layout, states and figures."""
