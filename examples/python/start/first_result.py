"""The first program of docs/start-python.md: a result within a second, without measuring."""
import numpy

import collage

network = collage.load("zoo:mobilenet-v2")  # or the path of an ONNX file
for port in (*network.inputs, *network.outputs):
    print(port.name, port.type, port.shape)

session = network.session(how="priority")  # the first library that can run each operator
image = numpy.random.default_rng(1).random((1, 3, 224, 224), numpy.float32)
scores = session(image)
print(scores.shape, "the highest score is that of class", scores.argmax())
