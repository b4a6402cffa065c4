"""ONNX files in the styles of other exporters and packages, made by script."""
