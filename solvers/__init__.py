"""How plans are found: backends behind one protocol, and the session that judges their claims."""
