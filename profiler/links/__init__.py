"""What messages between devices cost: measured, fitted, watched (EPipe 3.1.2)."""
