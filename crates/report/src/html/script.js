"use strict";
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);
  const number = (n) => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, (_, __, at, all) =>
    all.length > 4 ? " " : "");
  const table = (text) => text.split(";").map((row) => row.split(" ").map(Number));
  const grids = new WeakMap();
  const grid = (of) => {
    if (!grids.has(of)) {
      const d = of.dataset;
      const named = ["accesses", "intervals", "start", "row", "rows"];
      const values = Object.fromEntries(named.map((name) => [name, Number(d[name])]));
      grids.set(of, { ...values, read: table(d.read), used: table(d.used) });
    }
    return grids.get(of);
  };
  const cell = (hit, event) => {
    const of = grid(hit.closest("[data-read]"));
    const box = hit.getBoundingClientRect();
    const part = (at, from, length, count) =>
      Math.min(count - 1, Math.max(0, Math.floor(((at - from) / length) * count)));
    const column = part(event.clientX, box.left, box.width, of.intervals);
    const row = of.rows - 1 - part(event.clientY, box.top, box.height, of.rows);
    const bound = (i) => Math.ceil((i * of.accesses) / of.intervals);
    const page = of.start + row * of.row;
    const read = of.read[column][row];
    const used = of.used[column][row];
    return `accesses ${number(bound(column))} to ${number(bound(column + 1) - 1)}, pages ` +
      `${number(page)} to ${number(page + of.row - 1)}: ${number(read)} read, ` +
      `${number(used)} of them used`;
  };
  document.addEventListener("pointermove", (event) => {
    const at = event.target instanceof Element ? event.target.closest("[data-t], [data-grid]") : null;
    tip.hidden = !at;
    if (!at) return;
    tip.textContent = at.dataset.t ?? cell(at, event);
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - width - 4);
    const above = event.clientY - height - 12;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${above > 4 ? above : event.clientY + 18}px`;
  });
  document.addEventListener("pointerleave", () => { tip.hidden = true; });
})();
