"""ONNX files in: validated, simplified, grouped into layers, cut into self-contained pieces."""
