"""What commands do, with progress, and the files that they read and write."""
