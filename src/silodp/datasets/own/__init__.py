"""Own data: a file of records, read by its form."""
