"use strict";
addEventListener("load", () => {
  const loaded = performance.now();
  const root = document.documentElement;
  const all = (of, selector) => [...of.querySelectorAll(selector)];
  const short = (element) => (element.textContent || element.className || element.tagName)
    .toString().trim().slice(0, 60);

  // Texts of one picture: none on another, none cut off at its edge.
  const overlaps = [];
  const outside = [];
  let texts = 0;
  for (const svg of all(document, "svg")) {
    const frame = svg.getBoundingClientRect();
    const rooms = all(svg, "text").map((text) => [short(text), text.getBoundingClientRect()]);
    texts += rooms.length;
    rooms.forEach(([name, room], at) => {
      const slack = 0.6;
      if (room.left < frame.left - slack || room.right > frame.right + slack ||
          room.top < frame.top - slack || room.bottom > frame.bottom + slack) {
        outside.push(name);
      }
      for (const [other, its] of rooms.slice(at + 1)) {
        if (room.left < its.right && its.left < room.right &&
            room.top + 2 < its.bottom && its.top + 2 < room.bottom) {
          overlaps.push(`${name} / ${other}`);
        }
      }
    });
  }
  texts += all(document, "td, th, p, dd, dt, h1, h2, li").length;

  // Texts against what is behind them, as WCAG counts contrast.
  const colour = (text) => text.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const linear = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const own = colour(getComputedStyle(at).backgroundColor);
      if (own.length < 4 || own[3] > 0) return own;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255];
  };
  const pale = new Set();
  const words = "h1, h2, h3, p, dt, dd, th, td, li, summary, caption, span, strong, code, pre, text";
  for (const element of all(document, words).slice(0, 4000)) {
    if (!element.textContent.trim() || element.closest("#probe")) continue;
    const style = getComputedStyle(element);
    const own = colour(element.tagName === "text" ? style.fill : style.color);
    const [one, other] = [light(own), light(behind(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) pale.add(`${short(element)}: ${contrast.toFixed(2)}`);
  }

  // What is pointed at says something, within the window.
  const silent = [];
  for (const element of all(document, "[data-t], [data-grid]").slice(0, 3000)) {
    const box = element.getBoundingClientRect();
    const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
    element.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, ...at }));
    const tip = document.querySelector(".tip");
    const said = tip && !tip.hidden ? tip.textContent : "";
    if (!said || /NaN|undefined/.test(said)) silent.push(`${short(element)}: '${said}'`);
  }
  const tip = document.querySelector(".tip");
  if (tip) tip.hidden = true;

  const width = root.clientWidth;
  const widest = all(document, "body *").find((element) =>
    element.getBoundingClientRect().right > width + 1 && !element.closest(".scroll > *"));
  const answer = document.createElement("pre");
  answer.id = "probe";
  answer.textContent = JSON.stringify({
    errors: window.failed, overlaps, outside, pale: [...pale], silent: silent.slice(0, 9), texts,
    scroll_width: root.scrollWidth, width: innerWidth, widest: widest ? short(widest) : "",
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    loaded_ms: loaded,
  });
  document.body.append(answer);
});
