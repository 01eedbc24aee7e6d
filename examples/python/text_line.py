#!/usr/bin/env python3
"""Reads the text in a picture with PP-OCR's trained models: text_line.py [--models FOLDER] [--save FILE.png] [PICTURE]

One model finds the places with text, another reads each place. Without a picture the program draws one. Pictures in files are
read and written by Pillow. Lines must be upright.
"""
import math

import numpy as np

import collage
import example

# The detector works at a scale at which no side is longer. Sides are rounded up to few sizes, because each size needs an
# engine. They must be multiples of 32, because the detector's layers halve them five times.
LONGEST_SIDE, DETECTOR_STEP = 960, 160
# A place counts if the detector is this sure of a pixel, and of the box on average. It marks the middle of a line: each side of
# the box moves out by the last factor times area over perimeter.
SURE_OF_PIXEL, SURE_OF_BOX, GROWTH = 0.3, 0.5, 1.6
# The reader takes lines of this height; widths are rounded up as well.
LINE_HEIGHT, WIDTH_STEP, WIDEST = 48, 320, 1280

# Letters of five by seven dots: one number for each line from the top. The highest of its five bits is the left dot.
LETTERS = {"A": (14, 17, 17, 31, 17, 17, 17), "C": (14, 17, 16, 16, 16, 17, 14), "D": (30, 17, 17, 17, 17, 17, 30),
           "E": (31, 16, 16, 30, 16, 16, 31), "G": (14, 17, 16, 23, 17, 17, 14), "L": (16, 16, 16, 16, 16, 16, 31),
           "O": (14, 17, 17, 17, 17, 17, 14), "R": (30, 17, 17, 30, 20, 18, 17), "S": (15, 16, 16, 14, 1, 1, 30),
           "T": (31, 4, 4, 4, 4, 4, 4), "X": (17, 17, 10, 4, 10, 17, 17), "2": (14, 17, 1, 6, 8, 16, 31),
           "4": (2, 6, 10, 18, 31, 2, 2), "+": (0, 4, 4, 31, 4, 4, 0), "=": (0, 0, 31, 0, 31, 0, 0), " ": (0,) * 7}


def weights(start, stop, count, extent):
    """A matrix that resamples `extent` pixels to `count`, from `start` to `stop`. It interpolates, and averages where it shrinks."""
    step = (stop - start) / count
    taps = max(1, math.ceil(step))
    at = np.clip(start + (np.arange(count * taps) + 0.5) * step / taps - 0.5, 0, extent - 1)
    low = at.astype(int)
    to = np.zeros((count, extent), np.float32)
    row = np.arange(count * taps) // taps
    np.add.at(to, (row, low), (1 - (at - low)) / taps)
    np.add.at(to, (row, np.minimum(low + 1, extent - 1)), (at - low) / taps)
    return to


def planes(picture, box, height, width):
    """A part of a picture as the networks take it: a plane for blue, for green and for red, from -1 for black to 1 for white."""
    left, top, right, bottom = box
    down, across = weights(top, bottom, height, picture.shape[0]), weights(left, right, width, picture.shape[1])
    return np.stack([down @ (picture[:, :, k] / np.float32(127.5) - 1) @ across.T for k in (2, 1, 0)])[None]


def draw_text(picture, text, left, top, size):
    """Draws text in dark grey; a dot has `size` pixels. Dots are rounded, because networks know printed letters, not squares."""
    dots = np.zeros((9, 6 * len(text) + 1), np.float32)
    for i, letter in enumerate(text):
        for y, line in enumerate(LETTERS[letter]):
            dots[y + 1, 6 * i + 1:6 * i + 6] = [line >> (4 - x) & 1 for x in range(5)]
    (rows, columns) = dots.shape
    large = weights(0, rows, rows * size, rows) @ dots @ weights(0, columns, columns * size, columns).T
    ink = np.clip((large - 0.4) * 0.7 * size + 0.5, 0, 1)[:, :, None]
    part = picture[top - size:top - size + len(ink), left - size:left - size + ink.shape[1]]
    part[:] = np.round(part + ink * (30.0 - part))


def pillow():
    try:
        import PIL.Image
        import PIL.ImageDraw
        return PIL
    except ImportError:
        raise example.Mistake("pictures in files need Pillow; install it by pip install pillow", status=1) from None


def read_picture(path):
    image = pillow().Image
    try:
        return np.array(image.open(path).convert("RGB"))
    except OSError as e:
        raise example.Mistake(f"{path}: cannot be read as a PNG or JPEG picture: {e}") from None


def save_with_boxes(picture, boxes, path):
    image = pillow().Image.fromarray(picture)
    for box in boxes:
        pillow().ImageDraw.Draw(image).rectangle([round(x) for x in box], outline=(220, 0, 0))
    image.save(path)


def boxes_of(likely):
    """The boxes around connected pixels that are likely to be text, in the map's pixels."""
    left_over = set(zip(*map(np.ndarray.tolist, np.nonzero(likely > SURE_OF_PIXEL))))
    found = []
    while left_over:
        place = [left_over.pop()]
        for y, x in place:  # grows while it is read
            for near in [(y + v, x + u) for v in (-1, 0, 1) for u in (-1, 0, 1)]:
                if near in left_over:
                    left_over.remove(near)
                    place.append(near)
        ys, xs = np.transpose(place)
        left, top, right, bottom = xs.min(), ys.min(), xs.max() + 1, ys.max() + 1
        width, height = right - left, bottom - top
        if min(width, height) < 3 or likely[top:bottom, left:right].mean() < SURE_OF_BOX:
            continue
        margin = GROWTH * width * height / (2 * (width + height))
        found.append((left - margin, top - margin, right + margin, bottom + margin))
    return found


def round_up(extent, step):
    """Rounds an extent up. Scaling may leave it a hair above a multiple; it then counts as that multiple."""
    return max(1, math.ceil(extent / step - 1e-6)) * step


def find_text(detector, picture):
    """The places of text in reading order: from the top, and within a line from the left."""
    scale = min(1.0, LONGEST_SIDE / max(picture.shape))
    height, width = (round_up(extent * scale, DETECTOR_STEP) for extent in picture.shape[:2])
    likely = detector(planes(picture, (0, 0, width / scale, height / scale), height, width))
    limits = [*picture.shape[1::-1]] * 2
    found = sorted((tuple(min(max(x / scale, 0.0), limit) for x, limit in zip(box, limits)) for box in boxes_of(likely[0, 0])),
                   key=lambda box: box[1])
    lines = []
    for box in found:
        if lines and box[1] <= (lines[-1][0][1] + lines[-1][0][3]) / 2:
            lines[-1].append(box)
        else:
            lines.append([box])
    return [box for line in lines for box in sorted(line)]


def alphabet_of(reader, path):
    """The model's file holds its alphabet, a character per line. An empty entry comes before them, and a space after them."""
    text = reader.network.metadata.get("character")
    if text is None:
        raise example.Mistake(f"{path}: it does not say which characters it reads")
    return ["", *text.split("\n"), " "]


def read_line(reader, alphabet, picture, box):
    """The text of a place, and the reader's average certainty of its characters."""
    left, top, right, bottom = box
    columns = min(max(math.ceil(LINE_HEIGHT * (right - left) / (bottom - top)), 1), WIDEST)
    line = np.zeros((1, 3, LINE_HEIGHT, round_up(columns, WIDTH_STEP)), np.float32)
    line[..., :columns] = planes(picture, box, LINE_HEIGHT, columns)
    probable = reader(line)[0]
    # The most probable character of each step. A character that is repeated without a break counts once.
    best = probable.argmax(axis=1)
    new = (best != 0) & (best != np.concatenate([[0], best[:-1]]))
    certain = probable.max(axis=1)[new]
    return "".join(alphabet[i] for i in best[new]), float(certain.mean()) if len(certain) else 0.0


def main():
    usage = "text_line.py [--models FOLDER] [--save FILE.png] [PICTURE]"
    words, folder, save = example.words_of(usage, "--models", "--save")
    if len(words) > 1:
        raise example.Mistake(f"usage: {usage}")
    if words:
        picture = read_picture(words[0])
    else:
        picture = np.full((288, 416, 3), 250, np.uint8)
        for text, *where in (("COLLAGE", 40, 32, 8), ("READS TEXT", 40, 128, 5), ("2 + 2 = 4", 40, 208, 6)):
            draw_text(picture, text, *where)

    # Both files leave sizes open: each size gets an engine when it is met.
    detector = collage.session(example.model(folder, "rapidocr/PP-OCRv6_det_small.onnx"))
    path = example.model(folder, "rapidocr/PP-OCRv6_rec_small.onnx")
    reader = collage.session(path)
    alphabet = alphabet_of(reader, path)
    boxes = find_text(detector, picture)
    for box in boxes:
        text, certain = read_line(reader, alphabet, picture, box)
        if text:
            print("{:4.0f} {:4.0f} {:4.0f} {:4.0f}  {:3.0f} %  {}".format(*box, 100 * certain, text))
    if not boxes:
        print("no text")
    if save:
        save_with_boxes(picture, boxes, save)


example.run(main)
