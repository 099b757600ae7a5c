"""Plug-ins, and the contract that every algorithm and data set keeps."""
