"""Sources of jobs that others ran: batch systems that are asked, and files."""
