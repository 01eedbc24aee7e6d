#!/usr/bin/env python3
"""Reports: the page of a plan, from outside and in a browser."""
import json
import os
import pathlib
import re
import unittest

import browser
import models
from pages import HOSTILE, Reader, as_measured, hostile_model, long_model
from program import BERT, MOBILENET, Case, collage


class Reports(Case):
    def plan_of(self, network, name):
        path = self.path(name)
        if not pathlib.Path(path).exists():
            self.succeeds("tune", network, "--plan", path, "--place", "priority", "--threads", "1", "--store", "none", "--quiet")
            pathlib.Path(path).write_text(json.dumps(as_measured(json.loads(pathlib.Path(path).read_text()))))
        return path

    def page_of(self, network, name, *more):
        plan, page = self.plan_of(network, name + ".json"), self.path(name + ".html")
        self.succeeds("report", network, "--plan", plan, "-o", page, *more)
        return pathlib.Path(page).read_bytes()

    def written(self, name, contents):
        (self.folder / name).write_bytes(contents)
        return self.path(name)

    def has(self, page, text):
        """The page is too long for the message of assertIn."""
        self.assertTrue(text.encode() in page, f"the page is without {text}")

    def is_whole(self, page):
        reader = Reader()
        reader.feed(page.decode())
        reader.close()
        self.assertEqual(reader.faults, [])
        self.assertEqual(reader.open, [])
        self.assertEqual(reader.loads, [])
        self.assertNotIn("img", reader.names)

    def test_pages_of_the_zoo(self):
        for network, name in ((BERT, "bert"), (MOBILENET, "mobilenet")):
            page = self.page_of(network, name)
            self.assertEqual(page, self.page_of(network, name))
            self.assertLess(len(page), 3_000_000)
            self.is_whole(page)
            for section in ("network", "times", "groups", "roofline", "memory", "missing", "plan"):
                self.has(page, f'<section id="{section}"')
            self.has(page, "<strong>the same as ")
            self.has(page, "<strong>gap 11.1 %</strong>")
        done = self.json_of("report", BERT, "--plan", self.path("bert.json"), "-o", self.path("bert.html"))
        self.assertEqual(list(done), ["network", "plan", "against", "file", "bytes", "groups", "boxes", "blocks", "crossings"])
        self.assertEqual(done["blocks"], 8)  # its layers
        to_pipe = collage("report", BERT, "--plan", self.path("bert.json"), "-o", "/dev/stdout")
        self.assertEqual(to_pipe.stdout.encode(), (self.folder / "bert.html").read_bytes())

    def test_another_plan(self):
        plan = self.plan_of(MOBILENET, "mobilenet.json")
        one = self.path("one.json")
        self.succeeds("tune", MOBILENET, "--plan", one, "--place", "priority", "--threads", "1", "--store", "none",
                      "--backends", "portable", "--quiet")
        page = self.page_of(MOBILENET, "mobilenet", "--against", one, "--peak", "100", "--bandwidth", "20")
        self.is_whole(page)
        self.has(page, "Difference")
        same = self.page_of(MOBILENET, "mobilenet", "--against", plan)
        self.has(same, "other kernels run the nodes at 0 places")

    def test_two_thousand_nodes(self):
        path = self.written("long.onnx", long_model(2000))
        self.plan_of(path, "long.json")
        page = self.page_of(path, "long")
        self.assertLess(len(page), 6_000_000)
        self.is_whole(page)

    def test_a_backend_that_others_help_is_not_alone(self):
        plan = json.loads(pathlib.Path(self.plan_of(BERT, "bert.json")).read_text())
        name = plan["singles"][0]["name"]
        for borrowed, called in ([], f"{name} alone"), ([plan["chosen"]["groups"][0]["nodes"][0][1]], f"{name} first (others where it cannot)"):
            plan["singles"][0]["borrowed"] = borrowed
            pathlib.Path(self.path("helped.json")).write_text(json.dumps({**plan, "origin": name}))
            self.has(self.page_of(BERT, "helped"), f"<strong>the same as {called}</strong>")
            told = " ".join(self.succeeds("explain", BERT, "--plan", self.path("helped.json")).stdout.split())
            self.assertIn(f"End to end, {called} was faster", told)

    def changed_page(self, network, name, change):
        """The page of a plan that was changed by hand, and what `explain` prints about the same plan."""
        plan = json.loads(pathlib.Path(self.plan_of(network, f"{name}-first.json")).read_text())
        change(plan)
        pathlib.Path(self.path(name + ".json")).write_text(json.dumps(plan))
        page = self.page_of(network, name)
        self.is_whole(page)
        return page.decode(), self.succeeds("explain", network, "--plan", self.path(name + ".json"), "--quiet").stdout

    def test_names_of_fallback_nodes(self):
        """A name adds no lines, and a long one is shortened on the page."""
        forged, long = "a\nfirst leaves 99 nodes to second: b", "n" * 200_000
        path = self.written("forged.onnx", models.model(
            models.node("Relu", ["x"], ["y"], forged), models.node("Sin", ["y"], ["z"], long), models.port(11, "x", [2, 3]),
            models.port(12, "z", [2, 3])))
        page, text = self.changed_page(path, "forged", lambda plan: plan["singles"][0].update(borrowed=[forged, long]))
        self.has(page.encode(), "leaves 2 nodes to")
        self.assertTrue("a\\u000afirst leaves 99 nodes" in page)
        self.assertLess(len(page), 400_000)
        self.assertFalse("\nfirst leaves" in page)
        self.assertTrue("a\\u000afirst leaves 99 nodes" in text)
        self.assertTrue(long in text)  # in `explain`, names stay whole
        self.assertFalse(re.search(r"(?m)^\s*first leaves", text))

    def test_one_run_has_no_interval(self):
        def once(plan):
            for run in plan["runs"]:
                run.update(runs=1, low_ms=run["median_ms"], high_ms=run["median_ms"], ratio_low=run["ratio"], ratio_high=run["ratio"])
            other = {**plan["chosen"]["groups"][0], "configuration": "other"}
            plan["singles"][0]["groups"] = [other, *plan["singles"][0]["groups"][1:]]
        page, text = self.changed_page(BERT, "once", once)
        self.assertEqual(page.count("one run, so no interval"), 2)  # of the time, and of the comparison
        self.assertNotIn("confidence of 95 %", page)
        self.assertNotIn("neither is clearly", page)
        self.assertIn("one run", text)
        self.assertNotIn("1.500..1.500", text)

    def test_a_runner_up_without_regret_is_not_named(self):
        def forget(plan):
            for group in plan["chosen"]["groups"]:
                group.update(regret_ms=None, instead="", runners_up=[{"backend": "rival", "pattern": "p", "kernel": "k", "cost_ms": 7}]
                             if group["step"] != "view" else [])
        page, text = self.changed_page(BERT, "forgotten", forget)
        table = re.search(r'<table class="groups">.*?</table>', page, re.DOTALL)[0]
        self.assertNotIn("rival", table)
        self.assertIn("Both are empty where no such placement is known.", page)
        self.assertNotIn("rival", text)
        self.assertNotIn("Both are empty", self.page_of(BERT, "bert").decode())

    def test_without_measuring(self):
        plan, page = self.path("unmeasured.json"), self.path("unmeasured.html")
        self.succeeds("tune", MOBILENET, "--plan", plan, "--place", "priority", "--threads", "1", "--store", "none", "--quiet")
        self.succeeds("report", MOBILENET, "--plan", plan, "-o", page, "--against", plan)
        text = pathlib.Path(page).read_text()
        body = text[:text.index('id="data"')]
        self.assertGreater(body.count(">not measured<"), 50)
        for number in (">0.0000<", ">0.0<", ">+0.0000<", ">0.0 %<"):
            self.assertNotIn(number, body)

    def test_limits_of_the_machine(self):
        for words, saying in ((["--peak", "100"], "The line is the peak"), (["--bandwidth", "20"], "The sloping line is the bandwidth"),
                              (["--peak", "100", "--bandwidth", "20"], "The lines are the limits"), ([], "peak is not known")):
            self.has(self.page_of(BERT, "bert", *words), saying)

    def test_absurd_times(self):
        def tiny(plan):
            for run in plan["runs"]:
                run["median_ms"] = 1e-300
        page, _ = self.changed_page(BERT, "tiny", tiny)
        summary = re.search(r'<dl class="summary">.*?</dl>', page, re.DOTALL)[0]
        self.assertNotRegex(summary, r"\binf\b|\d{20}")

    def test_names_from_right_to_left(self):
        hebrew = "\u05d0\u05d1\u05d2"
        path = self.written("hebrew.onnx", models.model(
            models.node("Relu", ["x"], [hebrew], hebrew), models.node("Tanh", [hebrew], ["y"], "last"), models.port(11, "x", [2, 3]),
            models.port(12, "y", [2, 3])))
        page = self.page_of(path, "hebrew").decode()
        self.is_whole(page.encode())
        self.assertIn(f"<title>\u2068{hebrew}\u2069: float32[2x3]", page)
        self.assertIn(f"<bdi>{hebrew}", page)

    def test_branches(self):
        def side(operator):
            body = models.node(operator, ["x"], [operator]) + models.field(2, operator) + models.port(12, operator, [2, 3])
            return models.field(6, body) + models.field(20, 5)
        branch = models.field(1, models.field(1, "flag") + models.field(2, "y") + models.field(4, "If") + models.field(3, "choose") +
                              models.field(5, models.field(1, "then_branch") + side("Sin")) +
                              models.field(5, models.field(1, "else_branch") + side("Neg")))
        path = self.written("branch.onnx", models.model(branch, models.port(11, "flag", [1], kind=9), models.port(11, "x", [2, 3]),
                                                        models.port(12, "y", [2, 3])))
        page = self.page_of(path, "branch")
        self.is_whole(page)
        self.assertEqual(page.count(b'<svg class="net"'), 3)
        for number in ("1", "1.1.1", "1.2.1"):  # the branch, and a group on each side
            self.has(page, f'<td class="num">{number}</td>')

    def test_hostile_names(self):
        page = self.page_of(self.written("hostile.onnx", hostile_model()), "hostile")
        self.is_whole(page)
        for raw in ("\u2028", "\u2029", "\u202e", "\x01", "\x1b"):
            self.assertFalse(raw.encode() in page, repr(raw))
        data = re.search(rb'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1]
        self.assertNotRegex(data, rb"[<>&]")
        self.assertIn(HOSTILE[0], json.loads(data)["texts"])

    def test_bad_input(self):
        plan, page = self.plan_of(BERT, "bert.json"), self.path("no.html")
        self.refused("report", BERT, "-o", page, saying="--plan is required; make a plan with collage tune")
        self.refused("report", BERT, "--plan", plan, saying="-o is required")
        self.refused("report", BERT, "--plan", plan, "-o", "-", saying="/dev/stdout")
        self.refused("report", BERT, "--plan", plan, "-o", self.path("nowhere/no.html"), saying="cannot be written")
        self.refused("report", BERT, "--plan", plan, "-o", str(self.folder), saying="it is a folder")
        self.refused("report", MOBILENET, "--plan", plan, "-o", page, saying="is a plan for another network")
        self.refused("report", BERT, "--plan", self.path("none.json"), "-o", page, saying="cannot be read")
        for option in ("--peak", "--bandwidth"):
            for rate in ("-1", "0", "nan", "inf", "1e300", "many"):
                self.refused("report", BERT, "--plan", plan, "-o", page, option, rate, saying=f"'{rate}' is not a number above 0")
        other = self.plan_of(MOBILENET, "mobilenet.json")
        self.refused("report", BERT, "--plan", plan, "--against", other, "-o", page, saying="is a plan for another network")
        self.refused("report", BERT, "--plan", plan, "-o", "/dev/full", saying="free some space", code=1)
        self.assertFalse(pathlib.Path(page).exists())
        old = self.written("old.html", b"old")
        self.refused("report", MOBILENET, "--plan", plan, "-o", old, saying="is a plan for another network")
        self.assertEqual(pathlib.Path(old).read_bytes(), b"old")


@unittest.skipUnless(browser.chromium(), "pages are not opened, because there is no Chromium: install chromium")
class InBrowser(Reports):
    """The same pages, opened and used."""
    test_pages_of_the_zoo = test_another_plan = test_branches = test_two_thousand_nodes = test_bad_input = None
    test_a_backend_that_others_help_is_not_alone = test_names_of_fallback_nodes = test_one_run_has_no_interval = None
    test_a_runner_up_without_regret_is_not_named = test_limits_of_the_machine = test_absurd_times = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        super().tearDownClass()

    def opened(self, name):
        """Opens a page, which must load nothing else and log no error. Returns the seconds that it took."""
        self.browser.errors.clear()
        self.browser.requests.clear()
        seconds = self.browser.open(self.path(name + ".html"))
        self.assertEqual(self.browser.errors, [])
        self.assertEqual(len(self.browser.requests), 1)
        if folder := os.environ.get("COLLAGE_SCREENSHOTS"):
            self.browser.screenshot(pathlib.Path(folder) / f"{name}.png")
        return seconds

    def test_hostile_names(self):
        super().test_hostile_names()
        self.opened("hostile")
        self.assertEqual(self.browser.value("document.querySelectorAll('img, b b, svg[onload]').length"), 0)
        self.assertIn("collage report", self.browser.value("document.title"))
        for box in range(self.browser.value("view.boxes.length")):
            self.browser.value(f"choose({box})")
        self.browser.value(f"showGroup(1); search('img'); filterGroups('img')")
        self.assertIn("onerror", self.browser.value("panel.textContent"))
        self.assertEqual(self.browser.value("document.images.length"), 0)
        self.assertEqual(self.browser.errors, [])

    def test_clicks_and_keys(self):
        self.page_of(BERT, "bert")
        self.opened("bert")
        value = self.browser.value
        self.assertEqual(value("canvas.querySelectorAll('svg.net:not([hidden]) .n.block').length"), 8)
        self.browser.click("svg.net:not([hidden]) .n.block")
        self.assertIn("1 of 8", value("panel.textContent"))
        self.browser.click("#fold")
        self.assertEqual(value("canvas.querySelectorAll('svg.net:not([hidden]) .n.block').length"), 0)
        self.browser.click("svg.net:not([hidden]) .n.group")
        self.assertEqual(value("panel.querySelectorAll('dt').length > 3"), True)
        chosen = value("view.chosen")
        value("canvas.focus()")
        self.browser.press("ArrowDown")
        self.assertGreater(value("view.chosen"), chosen)
        self.browser.click("#search")
        self.browser.write("softmax")
        self.assertEqual(value("document.getElementById('found').textContent"), "8 found")
        self.browser.press("Enter")
        self.assertIn("softmax", value("panel.textContent"))
        self.browser.press("Escape")
        self.assertEqual(value("document.querySelectorAll('.hit').length"), 0)
        self.browser.click("table.groups th:nth-child(2) button")
        self.assertEqual(value("document.querySelector('table.groups th:nth-child(2)').ariaSort"), "ascending")
        names = value("[...document.querySelectorAll('table.groups tbody tr td:nth-child(2)')].map((cell) => cell.textContent)")
        plain = [re.split("[+_ ]", name)[0] for name in names]
        self.assertEqual(plain, sorted(plain))
        self.browser.click("table.groups th:nth-child(6) button")
        cells = "[...document.querySelectorAll('table.groups tbody tr td:nth-child(6)')]"
        times = [float(text) for text in value(f"{cells}.map((cell) => cell.textContent)")]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertGreater(times[0], times[-1])
        self.browser.click("#filter")
        self.browser.write("layer_norm")
        self.assertGreater(value("document.querySelectorAll('table.groups tbody tr[hidden]').length"), 0)
        self.browser.click("table.groups tbody tr:not([hidden]) .link")
        self.assertIn("layer_norm", value("panel.textContent"))
        self.assertEqual(self.browser.errors, [])

    def test_parts_of_a_branch(self):
        Reports.test_branches(self)
        self.opened("branch")
        value = self.browser.value
        self.assertEqual(value("[...document.getElementById('part').options].map((one) => one.textContent)"),
                         ["the network", "group 1, part 1", "group 1, part 2"])
        value("chooseGroup(data.groups.findIndex((group) => group.n === '1.2.1'))")
        self.assertEqual(value("document.getElementById('part').value"), "part2")
        self.assertIn("neg", value("panel.textContent"))
        value("document.getElementById('part').value = 'full'; document.getElementById('part').dispatchEvent(new Event('change'))")
        self.assertEqual(value("view.svg.dataset.view"), "full")
        self.assertEqual(self.browser.errors, [])

    def test_search_follows_the_drawing(self):
        """What was found in one drawing says nothing about the boxes of another."""
        Reports.test_branches(self)
        self.opened("branch")
        value, search = self.browser.value, self.browser.click
        found = "document.getElementById('found').textContent"
        search("#search")
        self.browser.write("sin")  # in the first side of the branch only
        self.assertEqual(value(found), "0 found")
        show = "(() => {{ const part = document.getElementById('part'); part.value = '{}'; part.dispatchEvent(new Event('change')); }})()"
        value(show.format("part1"))
        self.assertEqual(value(found), "2 found")  # the group and its value
        search("#search")
        self.browser.press("Enter")
        self.assertIn("sin", value("panel.textContent"))
        value(show.format("part2"))
        self.assertEqual(value(found), "0 found")
        self.page_of(BERT, "bert")
        self.opened("bert")
        search("#search")
        self.browser.write("softmax")
        self.assertEqual(value(found), "8 found")  # in each folded block
        value("chooseGroup(data.blocks[0].groups[0])")  # unfolds
        self.assertEqual(value("view.svg.dataset.view"), "full")
        self.assertEqual(value("view.svg.querySelectorAll('.hit').length"), 8)
        self.assertTrue(value("hits.every((hit) => boxText(view.boxes[hit]).includes('softmax'))"))
        search("#search")
        self.browser.press("Enter")
        self.assertIn("softmax", value("panel.textContent"))
        self.assertEqual(self.browser.errors, [])

    def test_drags(self):
        """Dragging moves the drawing and chooses nothing. The next click chooses, wherever the drag ended."""
        self.page_of(BERT, "bert")
        value, box = self.browser.value, "svg.net:not([hidden]) .n.block"
        for name, end in (("inside", "[at.x + 260, at.y + 200]"), ("outside", "[at.x + 300, at.y - 40]")):
            self.opened("bert")
            value("document.getElementById('network').scrollIntoView()")
            x, y = value(f"(() => {{ const at = view.boxes[1].getBoundingClientRect(); return [at.x + 30, at.y + 12]; }})()")
            to_x, to_y = value(f"(() => {{ const at = canvas.getBoundingClientRect(); return {end}; }})()")
            for kind, at_x, at_y in (("mousePressed", x, y), ("mouseMoved", x + 9, y), ("mouseMoved", to_x, to_y), ("mouseReleased", to_x, to_y)):
                self.browser.ask("Input.dispatchMouseEvent", type=kind, x=at_x, y=at_y, button="left", clickCount=1,
                                 buttons=0 if kind == "mouseReleased" else 1)
            self.assertIsNone(value("view.chosen"), name)
            self.browser.click(box)
            self.assertIn("of 8", value("panel.textContent"), name)

    def test_whole_and_long_names(self):
        path = self.written("tall.onnx", long_model(2000))
        self.page_of(path, "tall")
        self.opened("tall")
        value = self.browser.value
        value("fold(false); fit(true)")
        self.assertLessEqual(value("view.height * scale"), value("canvas.clientHeight"))
        joined = "Array.from({length: 101}, (_, i) => 'conv_' + i).join('+')"
        self.assertRegex(value(f"brief({joined}, 101)"), r"^conv_0\+conv_1\+[^ ]*conv_\d+ \+ \u2026 \(101 nodes\)$")
        self.assertEqual(value("brief('x'.repeat(500)).length"), 73)
        self.assertEqual(value("brief('conv_0+relu_1', 2)"), "conv_0+relu_1")

    def test_conversions_by_time(self):
        def slow(plan):
            for i, conversion in enumerate(plan["chosen"]["conversions"]):
                conversion["cost_ms"] = 3 if i == 0 else 0.001
            plan["chosen"]["cost_ms"] = sum(part["cost_ms"] for part in plan["chosen"]["groups"] + plan["chosen"]["conversions"])
        self.changed_page(MOBILENET, "slow", slow)
        self.opened("slow")
        value = self.browser.value
        self.assertIn("groups and conversions", value("panel.querySelector('h3').textContent"))
        heights = value("[0, 1].map((i) => Number(views.get('full').boxes[views.get('full').of.get('c' + i)].querySelector('.f').getAttribute('height')))")
        self.assertGreater(heights[0], 3 * heights[1])
        self.browser.click("#panel table.list .link")  # the first of the list
        self.assertIn("Conversion of", value("panel.querySelector('h3').textContent"))
        self.assertEqual(value("view.boxes[view.chosen].dataset.c"), "0")
        self.assertEqual(self.browser.errors, [])

    def test_names_from_right_to_left(self):
        super().test_names_from_right_to_left()
        self.opened("hebrew")
        self.browser.value("showGroup(0)")
        self.assertGreater(self.browser.value("panel.querySelectorAll('bdi').length"), 2)
        # The script makes the cell a button, in which the name stays isolated.
        self.assertEqual(self.browser.value("document.querySelector('table.groups td button bdi').textContent"), "\u05d0\u05d1\u05d2 relu")

    def test_nodes_that_take_no_time_in_the_other_plan(self):
        """The panel and the table agree that the other plan has times, though it has none at this place."""
        other = json.loads(pathlib.Path(self.plan_of(BERT, "bert.json")).read_text())
        group = next(group for group in other["chosen"]["groups"] if group["step"] != "view")
        group.update(kernel="none", cost_ms=0, low_ms=0, high_ms=0)
        self.written("free.json", json.dumps(other).encode())
        page = self.page_of(BERT, "bert", "--against", self.path("free.json")).decode()
        self.opened("bert")
        shown = self.browser.value("showGroup(data.groups.findIndex((group) => group.other)); panel.textContent")
        self.assertIn("0.0000 ms there, \u22120.0", shown)
        table = page[page.index("<h3>Other kernels</h3>"):]
        self.assertRegex(table[:table.index("</table>")], r'<td class="num">0\.0000</td><td class="num">-0\.0')
        other["chosen"]["cost_ms"] = 0  # made without measuring
        self.written("free.json", json.dumps(other).encode())
        page = self.page_of(BERT, "bert", "--against", self.path("free.json")).decode()
        self.opened("bert")
        self.assertNotIn(" there, ", self.browser.value("showGroup(data.groups.findIndex((group) => group.other)); panel.textContent"))
        self.has(page.encode(), '<td class="num">not measured</td>')

    def test_without_measuring(self):
        super().test_without_measuring()
        self.opened("unmeasured")
        shown = "data.groups.forEach((_, i) => showGroup(i)); data.conversions.forEach((_, i) => showConversion(i)); panel.textContent"
        self.assertIn("not measured", self.browser.value(shown))
        self.assertEqual(self.browser.errors, [])

    def test_print(self):
        """No column of the printed groups is too narrow for words, and the network stands below its heading."""
        self.page_of(MOBILENET, "mobilenet")
        self.browser.ask("Emulation.setEmulatedMedia", media="print")
        self.browser.ask("Emulation.setDeviceMetricsOverride", width=1030, height=700, deviceScaleFactor=1, mobile=False)
        try:
            self.opened("mobilenet")
            value = self.browser.value
            self.assertLessEqual(value("document.documentElement.scrollWidth"), 1030)
            self.assertLess(value("document.querySelector('#network').scrollHeight"), 700)
            self.assertGreater(value("document.querySelector('table.groups td:nth-child(4)').clientWidth"), 120)
        finally:
            self.browser.ask("Emulation.clearDeviceMetricsOverride")
            self.browser.ask("Emulation.setEmulatedMedia", media="")

    def test_opens_soon(self):
        self.page_of(MOBILENET, "mobilenet")
        self.opened("mobilenet")
        # On a busy machine, only some tries show how fast it is.
        self.assertTrue(any(self.opened("mobilenet") < 1 for _ in range(20)))


if __name__ == "__main__":
    unittest.main()
