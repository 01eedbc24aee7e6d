#!/usr/bin/env python3
"""Runs a trained model at several shapes, with an engine for each: changing_shapes.py [--models FOLDER] [WIDTH...]"""
import time

import numpy as np

import collage
import example


def width_of(word):
    if not word.isdecimal() or not 8 <= int(word) <= 4096:
        raise example.Mistake(f"{word}: is not a width; give whole numbers from 8 to 4096")
    return int(word)


def time_of(call):
    """The milliseconds that a call takes."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def main():
    words, folder = example.words_of("changing_shapes.py [--models FOLDER] [WIDTH...]", "--models")
    widths = [width_of(word) for word in words] or [48, 160, 320, 160]

    # The model is read once. Nothing is said about its shapes.
    session = collage.session(example.model(folder, "rapidocr/ch_ppocr_mobile_v2.0_cls_mobile.onnx"))
    for width in widths:
        image = np.zeros((1, 3, 48, width), np.float32)
        # The first run at a shape makes an engine for it. Later runs are runs of that engine.
        first_ms = time_of(lambda: session(image))
        again_ms = time_of(lambda: session(image))
        (name, scores), = session.run(image).items()
        print(f"width {width}: first run {first_ms:.3f} ms, second {again_ms:.3f} ms, {name} is {scores[0, 0]:.4f} and "
              f"{scores[0, 1]:.4f}")
    print(f"{session.info['engines']} engines share {session.info['packed_bytes'] / 1e6:.1f} MB of weights")


example.run(main)
