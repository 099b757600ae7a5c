"""Own data: a file comes in as text and goes out as numbers, by a schema that is decided once; first: schema.py."""
