#!/usr/bin/env python3
"""A program for ONNX Runtime, run by collage: drop_in.py [--models FOLDER] [--plan FILE]

Only the import differs from a program for ONNX Runtime. The entries of "set_up" are collage's own, and may be left out.
"""
import numpy as np

import collage.onnxruntime as ort
from collage.onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
import example


def set_up(plan_file):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    if plan_file:
        options.add_session_config_entry("collage.plan", plan_file)
    else:
        options.add_session_config_entry("collage.how", "estimate")
    return options


def main():
    words, folder, plan_file = example.words_of("drop_in.py [--models FOLDER] [--plan FILE]", "--models", "--plan")
    model_path = str(example.model(folder, "rapidocr/ch_ppocr_mobile_v2.0_cls_mobile.onnx"))
    image = np.linspace(-1, 1, 3 * 48 * 192, dtype=np.float32).reshape(1, 3, 48, 192)

    try:
        session = ort.InferenceSession(model_path, set_up(plan_file), providers=["CPUExecutionProvider"])
    except InvalidArgument as e:
        raise example.Mistake(str(e)) from e
    first = session.get_inputs()[0]
    print(first.name, first.shape, first.type)
    upright, turned = session.run(None, {first.name: image})[0][0]
    print(f"upright {upright:.4f}, turned {turned:.4f}")

    # The same with memory that is bound once.
    binding = session.io_binding()
    binding.bind_cpu_input(first.name, image)
    binding.bind_output(session.get_outputs()[0].name)
    session.run_with_iobinding(binding)
    scores = binding.copy_outputs_to_cpu()[0]
    print(f"bound: upright {scores[0, 0]:.4f}, turned {scores[0, 1]:.4f}")

    # What ONNX Runtime's interface lacks.
    print(session.collage_session.explain())


example.run(main)
