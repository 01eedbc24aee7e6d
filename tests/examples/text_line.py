#!/usr/bin/env python3
"""The example text_line reads text in pictures: usage: text_line.py PROGRAM MODELS"""
import program


class TextLine(program.Case):
    LINES = ["COLLAGE", "READS TEXT", "2 + 2 = 4"]

    def read(self, *words):
        """Boxes, scores and texts."""
        lines = [line.split(maxsplit=6) for line in self.answer(*words)]
        return [([int(n) for n in line[:4]], int(line[4]), line[6]) for line in lines]

    def test_its_own_picture(self):
        # The example in Python needs Pillow for files. It has the same tests.
        saving = [] if program.PROGRAM.endswith(".py") else ["--save", self.folder / "saved.png"]
        boxes, scores, texts = zip(*self.read(*saving))
        self.assertEqual(list(texts), self.LINES)
        self.assertGreater(min(scores), 75)
        # Within some pixels of where the letters were drawn.
        for box, drawn in zip(boxes, [(40, 32, 368, 88), (40, 128, 335, 163), (40, 208, 358, 250)]):
            for got, wanted in zip(box, drawn):
                self.assertLess(abs(got - wanted), 20, (box, drawn))
        for saved in saving[1:]:
            self.assertEqual([text for _, _, text in self.read(saved)], self.LINES)

    def test_mistakes(self):
        self.refused("a", "b", says="usage")
        self.refused("--save", says="usage")
        self.refused(self.write("a.png", b"no picture"), says="a.png: cannot be read as a PNG or JPEG picture")
        self.refused(models=self.folder, says="PP-OCRv6_det_small.onnx: is not here; tools/setup", status=1)


program.main("rapidocr/PP-OCRv6_det_small.onnx", "rapidocr/PP-OCRv6_rec_small.onnx")
