"""The third program of docs/start-python.md: a model whose shapes change from run to run.

usage: open_shapes.py FILE.onnx     (.deps/models/rapidocr/ch_ppocr_mobile_v2.0_cls_mobile.onnx)
"""
import sys

import numpy

import collage

model = sys.argv[1]

network = collage.load(model)  # x is float32[?x3x?x?] in the file
print(network.is_open, *network.inputs)

session = network.session(how="priority")  # without it, each new shape is placed by stored costs
for width in (96, 192):
    outputs = session.run({"x": numpy.zeros((1, 3, 48, width), numpy.float32)})
    print(width, *(array.shape for array in outputs.values()))
