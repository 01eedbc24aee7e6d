#!/usr/bin/env python3
"""collage replay: its page, its JSON, and what it refuses."""
import pathlib
import unittest

from program import Case

DATA = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "data" / "collage-costs"
PUBLISHED = ["taso-bert", "nasnet-a-paper", "resnext50-paper", "resnet50-3d-paper"]
MODELLED = ["bert-paper", "dcgan-paper", "resnet50", "mobilenet-v2"]
MEMBERS = ["name", "table", "coverage", "nodes", "candidates", "optimum_ms", "lower_bound_ms", "gap", "published_ms",
           "search_ms"]


class Replay(Case):
    def test_json(self):
        networks = self.json_of("replay")["networks"]
        self.assertEqual([n["name"] for n in networks], PUBLISHED + MODELLED)
        for n in networks:
            self.assertEqual(list(n), MEMBERS)
            self.assertEqual(n["published_ms"] is None, n["name"] in MODELLED)
            self.assertEqual(n["table"] == "roofline", n["name"] in MODELLED)
            self.assertEqual(n["gap"], 0)
            self.assertEqual(n["lower_bound_ms"], n["optimum_ms"])
            self.assertLessEqual(n["optimum_ms"], n["published_ms"] or n["optimum_ms"])
            self.assertGreater(n["search_ms"], 0)
        self.assertEqual([n["coverage"] for n in networks], [0.8125, 1, 1, 1, 0, 0, 0, 0])

    def test_page(self):
        page = self.succeeds("replay", "taso-bert", "mobilenet-v2").stdout
        self.fits_page(page)
        self.assertRegex(page, r"\nmobilenet-v2 +roofline +modelled ")

    def test_files(self):
        built_in = self.json_of("replay", "resnext50-paper")["networks"][0]
        folder = self.json_of("replay", "resnext50-paper", "--data", str(DATA))["networks"][0]
        named = self.json_of("replay", "resnext50-paper", "--costs", str(DATA / "operator-cost-desktop-b.json"))
        for other in (folder, named["networks"][0]):
            self.assertEqual({**other, "search_ms": 0}, {**built_in, "search_ms": 0})
        jetson = self.json_of("replay", "resnext50-paper", "--costs", str(DATA / "operator-cost-jetson.json"))
        self.assertEqual(jetson["networks"][0]["table"], "jetson")
        self.assertGreater(jetson["networks"][0]["optimum_ms"], 10 * built_in["optimum_ms"])
        no_cublas = self.json_of("replay", "taso-bert", "--costs", str(DATA / "operator-cost-rtx2070-3d.json"))
        self.assertIsNone(no_cublas["networks"][0]["published_ms"])

    def test_refusals(self):
        self.refused("replay", "resnet", saying="there is no network of this name to replay")
        self.refused("replay", "--costs", self.path("none.json"), saying="cannot be read")
        self.refused("replay", "--data", self.path("nowhere"), saying="cannot be read")
        self.refused("replay", "--costs", str(self.folder), saying="cannot be read")
        table = pathlib.Path(self.path("table.json"))
        for text, saying in (("", "is not JSON"), ("{}", "is not a table of costs"), ('{"relu": [1, 0]}', "its key")):
            table.write_text(text)
            self.refused("replay", "taso-bert", "--costs", str(table), saying=saying)


if __name__ == "__main__":
    unittest.main()
