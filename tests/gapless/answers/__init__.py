"""What results say, as data."""
