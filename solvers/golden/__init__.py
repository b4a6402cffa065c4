"""Golden instances: small problems with their optimum, worked out by hand in `why`."""
