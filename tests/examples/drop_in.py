#!/usr/bin/env python3
"""The example drop_in runs a program for ONNX Runtime: usage: drop_in.py PROGRAM MODELS"""
import re

import program


class DropIn(program.Case):
    def test_both_ways_of_running_agree(self):
        lines = self.answer()
        self.assertEqual(lines[0], "x [None, 3, '?', '?'] tensor(float)")
        scores = re.fullmatch(r"upright (0\.\d{4}), turned (0\.\d{4})", lines[1])
        self.assertAlmostEqual(float(scores[1]) + float(scores[2]), 1, delta=0.001)
        self.assertEqual(lines[2], "bound: " + lines[1])

    def test_mistakes(self):
        self.refused("--plan", self.folder / "none.json", says="none.json does not exist")
        self.refused(models=self.folder, says="tools/setup fetches it", status=1)


program.main("rapidocr/ch_ppocr_mobile_v2.0_cls_mobile.onnx")
