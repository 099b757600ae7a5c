"""What the Snakefile asks: plan, digests, resources; provenance and publishing."""
