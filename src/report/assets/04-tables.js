// Tables: sorting, filtering, and rows that lead to boxes.
// Numbers begin with the largest, texts and the numbers of groups with the first; a second click turns the order round.
function sortBy(table, column, heading) {
  const body = table.tBodies[0], numeric = heading.classList.contains("num");
  const opposite = { ascending: "descending", descending: "ascending" };
  const order = opposite[heading.getAttribute("aria-sort")] || (numeric && column !== 0 ? "descending" : "ascending");
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", order);
  const text = (row) => row.cells[column].textContent;
  const numberOf = (row) => { const value = parseFloat(text(row)); return Number.isNaN(value) ? -Infinity : value; };
  const compare = numeric && column !== 0
    ? (a, b) => numberOf(a) - numberOf(b)
    : (a, b) => text(a).localeCompare(text(b), "en", { numeric: true });
  const sign = order === "ascending" ? 1 : -1;
  body.append(...[...body.rows].sort((a, b) => sign * compare(a, b)));
}

function makeSortable(table) {
  if (table.tBodies[0].rows.length < 2) return;
  for (const heading of table.tHead.rows[0].cells) {
    if (heading.textContent === "") continue;
    const button = element("button", heading.textContent, { type: "button" });
    heading.replaceChildren(button);
    button.addEventListener("click", () => sortBy(table, heading.cellIndex, heading));
  }
}

function makeRowLead(row) {
  const group = Number(row.dataset.g);
  const cell = row.closest("table").classList.contains("groups") ? row.cells[1] : row.cells[0];
  const link = element("button", [...cell.childNodes], { type: "button", class: "link" });
  cell.replaceChildren(link);
  row.addEventListener("click", () => {
    chooseGroup(group);
    document.getElementById("network").scrollIntoView();
  });
}

function words(text) {
  return text.toLowerCase().split(/\s+/).filter((word) => word !== "");
}

// The text that a group is found by: names, operators, backend, kernel and layout.
function textOf(group) {
  if (group.text === undefined) {
    const nodes = group.nodes.map(([name, kind]) => `${said(name)} ${said(kind)}`).join(" ");
    const values = group.out.map(([name]) => said(name)).join(" ");
    group.text = [said(group.l), said(data.runners[group.r][0]), said(group.k), said(group.y), nodes, values].join(" ").toLowerCase();
  }
  return group.text;
}

function filterGroups(text) {
  const wanted = words(text);
  const rows = [...document.querySelectorAll("table.groups tbody tr")];
  let kept = 0;
  for (const row of rows) {
    const all = textOf(data.groups[Number(row.dataset.g)]);
    const fits = wanted.every((word) => all.includes(word));
    row.hidden = !fits;
    kept += fits;
  }
  document.getElementById("kept").textContent = wanted.length === 0 ? "" : `${kept} of ${rows.length} groups`;
}

let hits = [], hit = -1;

function boxText(box) {
  if ("g" in box.dataset) return textOf(data.groups[Number(box.dataset.g)]);
  if ("b" in box.dataset) return data.blocks[Number(box.dataset.b)].groups.map((g) => textOf(data.groups[g])).join(" ");
  return box.textContent.toLowerCase();
}

function search(text) {
  const wanted = words(text);
  hits = [];
  hit = -1;
  view.boxes.forEach((box, i) => {
    const all = wanted.length === 0 ? "" : boxText(box);
    const fits = wanted.length !== 0 && wanted.every((word) => all.includes(word));
    box.classList.toggle("hit", fits);
    if (fits) hits.push(i);
  });
  canvas.classList.toggle("searching", wanted.length !== 0);
  document.getElementById("found").textContent = wanted.length === 0 ? "" : `${hits.length} found`;
}

function nextHit(step) {
  if (hits.length === 0) return;
  hit = (hit + step + hits.length) % hits.length;
  choose(hits[hit]);
  document.getElementById("found").textContent = `${hit + 1} of ${hits.length}`;
}
