"""Features of the product that are plug-ins of it: each registers by `seatrial.hooks`."""
