// The drawing: which of its two forms is shown, zoom, and the box that is chosen.
const canvas = document.getElementById("canvas");
const views = new Map([...canvas.querySelectorAll("svg.net")].map((svg) => [svg.dataset.view, makeView(svg)]));
let view = views.get("full");
let scale = 1;

// The boxes and ways of one form, by the numbers of its boxes.
function makeView(svg) {
  const boxes = [...svg.querySelectorAll(".boxes > .n")];
  const ways = boxes.map(() => []);
  for (const path of svg.querySelectorAll(".w")) {
    const ends = path.dataset.e.split(",").map(Number);
    for (const end of ends) ways[end].push({ path, ends });
  }
  const size = svg.viewBox.baseVal;
  const places = boxes.map((box) => box.transform.baseVal[0].matrix);
  const view = { svg, boxes, ways, places, width: size.width, height: size.height, of: new Map(), chosen: null };
  boxes.forEach((box, i) => {
    for (const kind of ["g", "c", "b"]) if (kind in box.dataset) view.of.set(kind + box.dataset[kind], i);
  });
  return view;
}

// The scale at which all of the drawing fits.
function wholeScale() {
  return Math.min((canvas.clientWidth - 4) / view.width, (canvas.clientHeight - 4) / view.height, 1.5);
}

function zoom(to, keep) {
  const fixed = keep || { x: canvas.clientWidth / 2, y: canvas.clientHeight / 2 };
  const next = Math.min(3, Math.max(Math.min(0.02, wholeScale()), to));
  const x = (canvas.scrollLeft + fixed.x) / scale, y = (canvas.scrollTop + fixed.y) / scale;
  scale = next;
  view.svg.style.width = view.width * scale + "px";
  view.svg.style.height = view.height * scale + "px";
  canvas.scrollLeft = x * scale - fixed.x;
  canvas.scrollTop = y * scale - fixed.y;
}

function fit(whole) {
  zoom(whole ? wholeScale() : Math.min(Math.max((canvas.clientWidth - 4) / view.width, 0.25), 1.1));
}

function fold(on) {
  if (!views.has("folded") && on) return;
  showView(views.get(on ? "folded" : "full"));
  const button = document.getElementById("fold");
  if (button) {
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? "Unfold repeated blocks" : "Fold repeated blocks";
  }
}

// Shows another drawing: the network, its folded form, or a subgraph of a branch or loop.
function showView(next) {
  for (const one of views.values()) one.svg.toggleAttribute("hidden", one !== next);
  view = next;
  const part = document.getElementById("part");
  if (part) part.value = next.svg.dataset.view === "folded" ? "full" : next.svg.dataset.view;
  scale = 1;
  begin();
  search(document.getElementById("search").value);  // the boxes that were found are those of the other drawing
}

// At first the drawing is as wide as the canvas, or wider where its texts would be too small; its top is in the middle.
function begin() {
  fit(false);
  if (scale < 0.7) zoom(0.7);
  canvas.scrollTop = 0;
  canvas.scrollLeft = view.boxes.length > 0 ? view.places[0].e * scale - canvas.clientWidth / 2 + 40 : 0;
}

function reveal(index) {
  const place = view.places[index], frame = view.boxes[index].querySelector(".f:not(.back)");
  const width = Number(frame.getAttribute("width")), height = Number(frame.getAttribute("height"));
  if (scale < 0.5) zoom(0.8);
  const left = place.e * scale, top = place.f * scale, room = 24;
  if (left < canvas.scrollLeft + room || left + width * scale > canvas.scrollLeft + canvas.clientWidth - room)
    canvas.scrollLeft = left + (width * scale - canvas.clientWidth) / 2;
  if (top < canvas.scrollTop + room || top + height * scale > canvas.scrollTop + canvas.clientHeight - room)
    canvas.scrollTop = top + (height * scale - canvas.clientHeight) / 2;
}

function unmark() {
  for (const marked of document.querySelectorAll(".on")) marked.classList.remove("on");
}

// Marks a box and the ways at it, and shows its figures.
function choose(index, show = true) {
  unmark();
  view.chosen = index;
  const box = view.boxes[index];
  box.classList.add("on");
  for (const { path } of view.ways[index]) path.classList.add("on");
  if (show) reveal(index);
  if ("g" in box.dataset) {
    for (const other of document.querySelectorAll(`tr[data-g="${box.dataset.g}"], .m[data-g="${box.dataset.g}"]`))
      other.classList.add("on");
    showGroup(Number(box.dataset.g));
  } else if ("c" in box.dataset) {
    showConversion(Number(box.dataset.c));
  } else if ("b" in box.dataset) {
    showBlock(Number(box.dataset.b));
  } else {
    showPort(box);
  }
}

// A group from a table or chart.
function chooseGroup(group) {
  chooseBox("g" + group);
}

// A box by what it shows, in the drawing that is shown, or else in the one that has it.
function chooseBox(key) {
  if (!view.of.has(key)) {
    const other = [...views.values()].find((one) => one.of.has(key));
    if (other === views.get("full")) fold(false);
    else showView(other);
  }
  choose(view.of.get(key));
}

// The next box along a line, or beside this one.
function neighbour(key) {
  const at = view.chosen;
  if (at === null) return 0;
  if (key === "ArrowRight") return Math.min(at + 1, view.boxes.length - 1);
  if (key === "ArrowLeft") return Math.max(at - 1, 0);
  for (const { ends } of view.ways[at]) {
    if (key === "ArrowDown" && ends[0] === at) return ends[1];
    if (key === "ArrowUp" && ends[0] !== at) return ends[0];
  }
  return at;
}

function listenToCanvas() {
  let held = null, dragged = false;  // a drag ends with a click, unless it ends outside the canvas
  canvas.addEventListener("pointerdown", (event) => {
    dragged = false;
    if (event.button !== 0 || event.pointerType === "touch") return;
    held = { x: event.clientX, y: event.clientY, left: canvas.scrollLeft, top: canvas.scrollTop, moved: false };
  });
  window.addEventListener("pointermove", (event) => {
    if (!held) return;
    const x = event.clientX - held.x, y = event.clientY - held.y;
    if (!held.moved && Math.hypot(x, y) < 5) return;
    held.moved = true;
    canvas.classList.add("held");
    canvas.scrollLeft = held.left - x;
    canvas.scrollTop = held.top - y;
  });
  const release = () => {
    dragged = held !== null && held.moved;
    setTimeout(() => canvas.classList.remove("held"));
    held = null;
  };
  window.addEventListener("pointerup", release);
  window.addEventListener("pointercancel", release);
  canvas.addEventListener("click", (event) => {
    if (dragged) return;
    const box = event.target.closest(".n");
    if (box) choose(Number(box.dataset.i), false);
  });
  canvas.addEventListener("dblclick", (event) => {
    const box = event.target.closest(".n.block");
    if (box) chooseGroup(data.blocks[Number(box.dataset.b)].groups[0]);
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = canvas.getBoundingClientRect();
    zoom(scale * Math.exp(-event.deltaY / 300), { x: event.clientX - frame.left, y: event.clientY - frame.top });
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key.startsWith("Arrow")) choose(neighbour(event.key));
    else if (event.key === "+" || event.key === "=") zoom(scale * 1.25);
    else if (event.key === "-") zoom(scale / 1.25);
    else if (event.key === "0") fit(true);
    else if (event.key === "Enter" && view.chosen !== null && "b" in view.boxes[view.chosen].dataset)
      chooseGroup(data.blocks[Number(view.boxes[view.chosen].dataset.b)].groups[0]);
    else return;
    event.preventDefault();
  });
}
