"""What is shipped of the phones of Hetero2Pipe and Band, from what the papers print."""
