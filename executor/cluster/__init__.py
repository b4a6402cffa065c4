"""Plans over the devices of a cluster, at work: actors on Ray, tensors over connections of their own."""
