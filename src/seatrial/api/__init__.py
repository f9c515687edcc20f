"""Results for Python programs: ``seatrial.open_results`` and tables of Arrow."""
