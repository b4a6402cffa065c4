"""Reference networks, built in Python with random weights of the true shapes."""
