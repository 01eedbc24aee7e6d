"""Compares collage with ONNX Runtime and OpenVINO, in one process and in turns. README.md says how; `run` is the command."""
