"""How plans of single formulations are shown: each module is called like one, and has a `PRESENTER`."""
