"""Shared helpers of the interoperability tests. Standard library only."""
