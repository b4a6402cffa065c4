"""What results say, as data: each topic is built once, and pages, pictures and the terminal draw it."""
