"use strict";
// The facts about groups, and helpers for making elements. Texts enter the page as text only, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const said = (number) => data.texts[number];

function element(name, parts = [], attributes = {}) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  for (const part of [].concat(parts)) made.append(part);
  return made;
}

function drawn(name, attributes, parts = []) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...parts);
  return made;
}

function number(value, digits = 4) {
  return value.toFixed(digits);
}

function large(value, unit) {
  const steps = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "K"]];
  for (const [size, letter] of steps) if (value >= size) return (value / size).toPrecision(3) + " " + letter + unit;
  return value.toPrecision(3) + " " + unit;
}

function swatch(runner) {
  const [, look, style] = data.runners[runner];
  const parts = [drawn("rect", { class: "s", width: 26, height: 14, rx: 2 })];
  if (look !== "engine") parts.push(drawn("rect", { class: "p", width: 26, height: 14, fill: `url(#p${style})` }));
  return drawn("svg", { class: `swatch ${look}`, width: 26, height: 14, "aria-hidden": "true" }, parts);
}
