"""Native algorithms: exact dynamic programming and search without a third-party solver."""
