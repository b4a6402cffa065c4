"""What people see: words, explanations, the terminal, pictures and the HTML report."""
