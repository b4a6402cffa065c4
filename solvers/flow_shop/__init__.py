"""Native algorithms for workloads: bounds, slicing, ordering, alignment and joint local search."""
