"""What the tests of reports need: models and plans to show, and a reader of pages."""
import html.parser

import models

HOSTILE = ("</script><img src=x onerror=\"document.title='broken'\">", "'\"><b>&amp;`${1}", "a\u2028b\u2029c\u202ed\x01\x1b[31m\te",
           "</title><svg/onload=alert(1)>", "]]><!--", "\\u003cimg src=x onerror=alert(1)\\u003e")


class Reader(html.parser.HTMLParser):
    """Checks that elements nest, and collects what a page would load."""
    EMPTY = ("meta", "input", "br", "link", "img")

    def __init__(self):
        super().__init__()
        self.open, self.faults, self.loads, self.names = [], [], [], set()

    def handle_starttag(self, tag, attributes):
        self.names.add(tag)
        if len(dict(attributes)) != len(attributes):
            self.faults.append(f"{tag} has an attribute twice at {self.getpos()}")
        self.loads += [value for name, value in attributes
                       if name in ("src", "href", "xlink:href", "data", "action") and not value.startswith("#")]
        self.loads += [name for name, _ in attributes if name.startswith("on")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")


def hostile_model():
    """A network whose names would be markup, or confuse their readers."""
    first, second, third, *others = HOSTILE
    parts = [models.node("Relu", [first], [second], third), models.node("Tanh", [second], ["middle"], first)]
    last = "middle"
    for name in others:
        parts.append(models.node("Sigmoid", [last], [name], name))
        last = name
    return models.model(*parts, models.port(11, first, [2, 3]), models.port(12, last, [2, 3]))


def long_model(nodes):
    """Many nodes with long and short ways between them, and without repeated blocks to speak of."""
    kinds = ("Relu", "Tanh", "Sigmoid", "Abs", "Neg")
    parts, values = [], ["x"]
    for i in range(nodes):
        if i % 4 == 3:
            parts.append(models.node("Add", [values[-1], values[max(0, len(values) - 1 - i * 7 % 23)]], [f"v{i}"], f"sum{i}"))
        else:
            parts.append(models.node(kinds[i * i % 5], [values[-1]], [f"v{i}"], f"step{i}"))
        values.append(f"v{i}")
    return models.model(*parts, models.port(11, "x", [2, 3]), models.port(12, values[-1], [2, 3]))


def as_measured(plan):
    """A plan with times as if it had been measured, which takes long: every part of a page has something to show."""
    chosen = plan["chosen"]
    for i, group in enumerate(chosen["groups"]):
        if group["step"] != "view":
            cost = 0.01 * (i * i % 23 + 1)
            group.update(cost_ms=cost, low_ms=0.9 * cost, high_ms=1.2 * cost, alone_ms=0.8 * cost, regret_ms=0.1, instead="other")
    chosen["cost_ms"] = sum(group["cost_ms"] for group in chosen["groups"])
    singles = plan["singles"] or [{**chosen, "name": plan["backends"][0]["name"]}]
    names = ["plan"] + [single["name"] for single in singles]
    runs = [{"name": name, "median_ms": 2 + i, "low_ms": 1.9 + i, "high_ms": 2.2 + i, "runs": 9, "ratio": 1 + i / 2,
             "ratio_low": 1 + i / 3, "ratio_high": 1.1 + i / 2} for i, name in enumerate(names)]
    return {**plan, "origin": "search", "optimal": True, "lower_bound_ms": 0.9 * chosen["cost_ms"], "runs": runs,
            "singles": singles}
