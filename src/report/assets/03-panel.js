// The panel beside the drawing.
const panel = document.getElementById("panel");

function show(...parts) {
  panel.replaceChildren(...parts.filter((part) => part !== null));
  panel.scrollTop = 0;
}

function facts(rows) {
  const list = element("dl");
  for (const [term, text] of rows) if (text !== null && text !== "") list.append(element("dt", term), element("dd", text));
  return list;
}

function part(title, contents) {
  const box = element("div");
  box.append(element("h4", title), contents);
  return box;
}

// A name, which keeps its own direction of writing: one from right to left would turn round the figures beside it.
function named(name) {
  return element("bdi", name);
}

// A name where there is little room: its first characters, or the first of the names that "+" joins.
function brief(name, nodes = 1) {
  const most = 72, letters = Array.from(name.slice(0, 4 * most));
  if (letters.length <= most) return name;
  const start = letters.slice(0, most).join("");
  const end = nodes > 1 ? start.lastIndexOf("+") : -1;
  return end < 0 ? start + "\u2026" : `${start.slice(0, end)} + \u2026 (${nodes} nodes)`;
}

function labelOf(group) {
  return brief(said(group.l), group.count);
}

function ms(value) {
  return data.total === 0 ? "not measured" : `${number(value)} ms`;
}

function small(first, second) {
  return element("li", [named(first), " ", element("small", second)]);
}

function valuesOf(list) {
  return element("ul", list.map(([name, type, constant]) => small(said(name), said(type) + (constant ? ", constant" : ""))));
}

function work(group) {
  const [flops, bytes] = group.work, [ms] = group.ms;
  const rows = [];
  if (flops > 0) rows.push(["Arithmetic", large(flops, "FLOP") + (ms > 0 ? `, ${large(flops / ms * 1e3, "FLOP/s")}` : "")]);
  if (bytes > 0) rows.push(["Memory", large(bytes, "B") + (ms > 0 ? `, ${large(bytes / ms * 1e3, "B/s")}` : "")]);
  if (flops > 0 && bytes > 0) rows.push(["Intensity", `${(flops / bytes).toPrecision(3)} FLOP per byte`]);
  return rows;
}

function times(group) {
  if (data.total === 0) return [["Time", "not measured"]];
  const [cost, low, high, alone, other] = group.ms;
  return [
    ["Time", `${number(cost)} ms, ${(100 * cost / data.total).toFixed(1)} %`],
    ["95 % interval", high > low ? `${number(low)} \u2013 ${number(high)} ms` : ""],
    ["Alone", alone > 0 ? `${number(alone)} ms` : ""],
    ["Switch", other > 0 ? `${number(other)} ms, because another backend wrote its operands` : ""],
  ];
}

function choice(group) {
  if (group.why === undefined && !group.regret && group.estimate === undefined) return null;
  const parts = element("div");
  if (group.why !== undefined) {
    const why = said(group.why);
    parts.append(element("p", why.charAt(0).toUpperCase() + why.slice(1) + "."));
  }
  const rows = [];
  if (group.regret) rows.push(["Without it", `+ ${number(group.regret[0])} ms`], ["It would be", said(group.regret[1])]);
  if (group.estimate !== undefined) rows.push(["Estimate", said(group.estimate)]);
  parts.append(facts(rows));
  return part("Choice", parts);
}

function others(group) {
  const rows = group.others.map(([backend, pattern, kernel, ms]) =>
    element("tr", [element("td", [said(backend), " ", element("small", [said(pattern), said(kernel)].filter((text) => text).join(", "))]),
      element("td", ms > 0 ? `${number(ms)} ms` : "", { class: "num" })]));
  return part("Other kernels for these nodes", element("table", rows));
}

function refusals(group) {
  return part("Refusals", element("ul", group.refused.map(([backend, pattern, where, why]) =>
    element("li", [`${said(backend)} ${said(pattern)} `, element("small", ["at ", named(brief(said(where))), `: ${said(why)}`])]))));
}

function otherPlan(group) {
  // As in the table of differences: a region of views takes no time in a plan that has times.
  const isMeasured = data.total > 0 && data.other_total > 0;
  const list = group.other.kernels.map(([backend, kernel, cost]) =>
    small(said(backend), said(kernel) + (cost > 0 ? `, ${number(cost)} ms` : "")));
  if (!isMeasured) return part("The other plan runs these nodes by", element("ul", list));
  const change = group.other.its - group.other.ms;
  const sum = element("p", `${number(group.other.its)} ms there, ${change >= 0 ? "+" : "\u2212"}${number(Math.abs(change))} ms.`);
  const box = element("div", [sum, element("ul", list)]);
  return part("The other plan runs these nodes by", box);
}

function nodesOf(group) {
  const list = group.nodes.map(([name, kind, attributes]) =>
    small(said(name), said(kind) + (said(attributes) ? ` {${said(attributes)}}` : "")));
  if (group.count > group.nodes.length) list.push(element("li", `and ${group.count - group.nodes.length} more`));
  return part(group.count === 1 ? "Node" : `${group.count} nodes`, element("ul", list));
}

function showGroup(index) {
  const group = data.groups[index];
  const title = element("h3", [group.n ? `${group.n}. ` : "", named(labelOf(group))]);
  const who = element("p", [swatch(group.r), element("b", said(data.runners[group.r][0])), element("span", said(group.k))],
    { class: "who" });
  if (!group.ms) {
    show(title, who, element("p", group.part ? "A node of a region: its library runs the region as a whole, and tells no times of nodes." :
      "A view: no kernel runs, and one value lies in the memory of another.", { class: "hint" }),
      part("Reads", valuesOf(group.in)), part("Writes", valuesOf(group.out)), nodesOf(group));
    return;
  }
  const kind = [["Pattern", said(group.p)], ["Configuration", group.c === undefined ? "" : said(group.c)], ["Layout", said(group.y)],
    ["Algorithm", group.algorithm ? `${said(group.algorithm[0])}, error bound ${group.algorithm[1].toExponential(1)}` : ""]];
  show(title, who, facts([...times(group), ...work(group), ...kind]), choice(group), group.other ? otherPlan(group) : null,
    group.others ? others(group) : null, nodesOf(group), part("Reads", valuesOf(group.in)), part("Writes", valuesOf(group.out)),
    group.refused ? refusals(group) : null);
}

function showConversion(index) {
  const [value, type, from, to, backend, kernel, cost] = data.conversions[index];
  show(element("h3", ["Conversion of ", named(brief(said(value)))]),
    facts([["Type", said(type)], ["From", said(from)], ["To", said(to)], ["Backend", said(backend)], ["Kernel", said(kernel)],
      ["Time", ms(cost)]]));
}

// A folded block: its groups, each of which leads to its box.
function showBlock(index) {
  const block = data.blocks[index];
  const groups = block.groups.filter((g) => data.groups[g].ms);
  const sum = groups.reduce((all, g) => all + data.groups[g].ms[0], 0);
  const list = element("table", groups.map((g) => {
    const group = data.groups[g];
    return leadingRow(group.r, named(labelOf(group)), data.total === 0 ? "" : ms(group.ms[0]), () => chooseGroup(g));
  }), { class: "list" });
  const open = element("button", "Unfold", { type: "button" });
  open.addEventListener("click", () => chooseGroup(block.groups[0]));
  show(element("h3", `Block ${letters(block.kind)}, ${block.which + 1} of ${block.count} equal ones`),
    element("p", `${groups.length} groups, ${ms(sum)}`, { class: "who" }), open, part("Groups", list));
}

// A row of a list, which leads to a box.
function leadingRow(runner, name, figure, action) {
  const link = element("button", name, { type: "button", class: "link" });
  link.addEventListener("click", action);
  return element("tr", [element("td", runner < 0 ? "" : swatch(runner)), element("td", link), element("td", figure, { class: "num" })]);
}

// While nothing is chosen: the groups and conversions that take longest, each of which leads to its box.
function showLongest() {
  const list = [];
  data.groups.forEach((group, i) => {
    if (group.ms && !group.inner)
      list.push({ cost: group.ms[0], runner: group.r, name: [named(labelOf(group))], act: () => chooseGroup(i) });
  });
  data.conversions.forEach(([value, , , to, backend, , cost], i) => {
    if (!views.get("full").of.has("c" + i)) return;  // its time is part of a branch's or loop's
    list.push({ cost, runner: data.runners.findIndex(([runner]) => runner === backend), isConversion: true,
      name: [named(brief(said(value))), ` to ${said(to)}`], act: () => chooseBox("c" + i) });
  });
  const longest = list.filter(({ cost }) => cost > 0).sort((a, b) => b.cost - a.cost).slice(0, 12);
  if (longest.length === 0) return;
  const rows = longest.map(({ cost, runner, name, act }) =>
    leadingRow(runner, name, `${(100 * cost / data.total).toFixed(1)} %`, act));
  show(element("h3", `The longest groups${longest.some((one) => one.isConversion) ? " and conversions" : ""}`),
    element("p", "Their parts of the sum of all costs.", { class: "hint" }), element("table", rows, { class: "list" }));
}

function letters(kind) {
  let text = "";
  for (let k = kind + 1; k > 0; k = Math.floor((k - 1) / 26)) text = String.fromCharCode(65 + (k - 1) % 26) + text;
  return text;
}

function showPort(box) {
  const lines = [...box.querySelectorAll("text")].map((text) => text.textContent);
  show(element("h3", named(brief(box.querySelector("title").textContent.split("\n")[0]))),
    element("p", (box.classList.contains("in") ? "Input, " : "Output, ") + (lines[1] || ""), { class: "hint" }));
}
