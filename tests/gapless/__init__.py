"""Tests of the public face: command line, documents, problems."""
