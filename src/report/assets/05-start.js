// Begins: everything above only defines.
function start() {
  document.documentElement.classList.add("script");
  const press = (name, action) => {
    const button = document.getElementById(name);
    if (button) button.addEventListener("click", action);
  };
  press("fold", () => fold(view !== views.get("folded")));
  const part = document.getElementById("part");
  if (part) part.addEventListener("change", () => {
    if (part.value === "full") fold(false);
    else showView(views.get(part.value));
  });
  press("less", () => zoom(scale / 1.25));
  press("more", () => zoom(scale * 1.25));
  press("fit", () => fit(true));
  press("wide", () => fit(false));
  listenToCanvas();
  const field = document.getElementById("search");
  field.addEventListener("input", () => search(field.value));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") nextHit(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { field.value = ""; search(""); }
  });
  const filter = document.getElementById("filter");
  filter.addEventListener("input", () => filterGroups(filter.value));
  for (const table of document.querySelectorAll(".wide > table")) makeSortable(table);
  for (const row of document.querySelectorAll("tr[data-g]")) makeRowLead(row);
  for (const mark of document.querySelectorAll(".m[data-g]"))
    mark.addEventListener("click", () => {
      chooseGroup(Number(mark.dataset.g));
      document.getElementById("network").scrollIntoView();
    });
  data.groups.forEach((group, i) => {
    for (const box of group.other ? document.querySelectorAll(`.n[data-g="${i}"]`) : []) box.classList.add("changed");
  });
  showLongest();
  if (views.has("folded")) fold(view.boxes.length > 60);
  else begin();
}

start();
