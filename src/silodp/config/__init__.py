"""Run files and experiments as Pydantic models; nothing here knows the registries."""
