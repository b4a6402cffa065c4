"""Reports: what they are about, read from files and written as pages."""
