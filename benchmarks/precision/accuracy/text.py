"""PP-OCRv6 reading lines of rendered text."""
from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from . import paired
from .case import Arrays, Count, Run, file_of

HEIGHT, WIDTH = 48, 320
MOST_LETTERS = 18
FONTS = pathlib.Path("/usr/share/fonts/truetype")
# Words of the two halves are for tuning and for measuring.
WORDS = (("station river garden window letter market bridge summer winter doctor kitchen yellow purple thirty eleven public weather "
          "Zürich Lyon quick jumps foxes vexed glyph pack liquor jugs twelve boxing wizards report version invoice total page "
          "street number account balance north south morning").split(),
         ("mountain island forest teacher orange silver hundred twenty quarter evening holiday journey bicycle engine harbour café "
          "Málaga Köln sphinx black quartz judge vow five dozen bright vixens amazed jovial queue section figure receipt amount "
          "avenue index price customer east west midnight").split())


@dataclasses.dataclass(frozen=True)
class Line:
    text: str
    image: Any  # float32, 1x3x48x320


def fonts() -> list[pathlib.Path | None]:
    """Pillow's own font and those of DejaVu, where they are."""
    return [None, *sorted(FONTS.glob("dejavu/*.ttf"))]


def words_of(draw: Any, half: int) -> str:
    """A few words or numbers that fit into a line."""
    text = ""
    while True:
        kind = draw.random()
        word = str(draw.choice(WORDS[half])) if kind < 0.7 else f"{draw.integers(10000) / 100:.2f}" if kind < 0.85 else \
            f"{draw.choice(list('ABCDEFGHKLMNPRTUXYZ'))}-{draw.integers(1000)}"
        if len(text) + 1 + len(word) > MOST_LETTERS:
            return text or word[:MOST_LETTERS]
        text = f"{text} {word}".strip()


def rendered(text: str, draw: Any) -> Any:
    """Ink on paper in any two greys far enough apart, at any size, more or less blurred and noisy."""
    file = draw.choice(np.array(fonts(), dtype=object))
    size = int(draw.integers(11, 41))
    font = ImageFont.load_default(size) if file is None else ImageFont.truetype(str(file), size)
    left, top, right, bottom = font.getbbox(text)
    margin = [int(x) for x in draw.integers(1, max(2, size // 4) + 1, 4)]
    paper, ink = (230, 30) if draw.random() < 0.75 else (30, 230)
    paper, ink = (grey + int(draw.integers(-25, 26)) for grey in (paper, ink))
    ink += int((paper - ink) * draw.uniform(0, 0.6))
    image = Image.new("L", (int(right - left) + margin[0] + margin[1], int(bottom - top) + margin[2] + margin[3]), paper)
    ImageDraw.Draw(image).text((margin[0] - left, margin[2] - top), text, fill=ink, font=font)
    image = image.filter(ImageFilter.GaussianBlur(float(draw.uniform(0, size / 16))))
    grey = np.asarray(image, np.float32) + draw.normal(0, draw.uniform(0, 30), (image.height, image.width))
    return Image.fromarray(np.clip(grey, 0, 255).astype(np.uint8))


def as_input(image: Any) -> Any:
    """A picture of a line as the network takes it: 48 pixels high, from -1 to 1, with zeros on its right."""
    columns = min(WIDTH, max(1, round(image.width * HEIGHT / image.height)))
    pixels = np.asarray(image.resize((columns, HEIGHT), Image.Resampling.BILINEAR), np.float32) / 127.5 - 1
    result = np.zeros((1, 3, HEIGHT, WIDTH), np.float32)
    result[..., :columns] = pixels
    return result


class Text:
    name, network = "text", "PP-OCRv6 (small), 1x3x48x320"
    data = "rendered lines of text, at sizes of 11 to 40 pixels, with blur and noise"
    unit, measures = "lines", ("characters", "exact lines")
    values: Arrays = {}
    shapes = {"x": (1, 3, HEIGHT, WIDTH)}

    def __init__(self, folder: pathlib.Path) -> None:
        self.model = file_of("rapidocr", "models/PP-OCRv6_rec_small.onnx")
        self.metadata: Mapping[str, str] = {}

    def samples(self, count: int, seed: int, run: Run) -> list[Arrays]:
        return [{"x": line.image} for line in self._lines(count, seed, 0)]

    def units(self, count: int, seed: int) -> Iterable[Line]:
        return self._lines(count, seed, 1)

    def outputs(self, unit: Line, run: Run) -> Arrays:
        return run({"x": unit.image})

    def judge(self, unit: Line, outputs: Arrays, in_float32: Arrays) -> Sequence[Count]:
        read = self.read(next(iter(outputs.values()))[0])
        length = len(unit.text)
        return (max(0, length - paired.distance(read, unit.text)), length), (int(read == unit.text), 1)

    @functools.cached_property
    def _alphabet(self) -> list[str]:
        """The file holds it, a character per line. An empty entry comes before them, and a space after them."""
        return ["", *self.metadata["character"].split("\n"), " "]

    def read(self, probable: Any) -> str:
        """The most probable character of each step. A character that is repeated without a break counts once."""
        best = probable.argmax(axis=1)
        new = (best != 0) & (best != np.concatenate([[0], best[:-1]]))
        return "".join(self._alphabet[i] for i in best[new])

    @staticmethod
    def _lines(count: int, seed: int, half: int) -> list[Line]:
        draw = np.random.default_rng([seed, half])
        texts = [words_of(draw, half) for _ in range(count)]
        return [Line(text, as_input(rendered(text, draw))) for text in texts]
