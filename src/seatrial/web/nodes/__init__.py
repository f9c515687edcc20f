"""What pages of machines and nodes show: their layout, states and figures."""
