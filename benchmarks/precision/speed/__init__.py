"""Compares plans in lower precision with ONNX Runtime and OpenVINO."""
