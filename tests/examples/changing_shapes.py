#!/usr/bin/env python3
"""The example changing_shapes runs a model at several widths: usage: changing_shapes.py PROGRAM MODELS"""
import re

import program


class ChangingShapes(program.Case):
    def test_engines_are_made_once_per_width(self):
        lines = self.answer(48, 160, 48, 91)
        self.assertEqual([re.match(r"width (\d+): first run [\d.]+ ms, second [\d.]+ ms, ", line)[1] for line in lines[:-1]],
                         ["48", "160", "48", "91"])
        self.assertRegex(lines[-1], r"^3 engines share \d+\.\d MB of weights$")
        scores = [[float(x) for x in re.search(r" is ([\d.]+) and ([\d.]+)$", line).groups()] for line in lines[:-1]]
        for pair in scores:
            self.assertAlmostEqual(sum(pair), 1, delta=0.001)
        self.assertEqual(scores[0], scores[2])

    def test_mistakes(self):
        self.refused("wide", says="wide: is not a width")
        self.refused("7", says="7: is not a width")
        self.refused(models=self.folder, says="tools/setup fetches it", status=1)


program.main("rapidocr/ch_ppocr_mobile_v2.0_cls_mobile.onnx")
