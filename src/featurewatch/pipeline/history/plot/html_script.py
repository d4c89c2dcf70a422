"""The script of a plot's page: shows the time and a tooltip under the pointer."""

from typing import Final

SCRIPT: Final = r"""
// Shows the time and the shape's tooltip under the pointer.
(() => {
  const svg = document.querySelector("svg");
  const tip = document.getElementById("tip");
  const line = document.getElementById("now");
  const { left, right, top, bottom, begin, end } = Object.fromEntries(
    Object.entries(svg.dataset).map(([name, value]) => [name, Number(value)]),
  );
  const hide = () => {
    tip.style.display = "none";
    line.setAttribute("opacity", 0);
  };
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("pointermove", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(
      svg.getScreenCTM().inverse(),
    );
    if (at.x < left || at.x > right || at.y < top || at.y > bottom) return hide();
    const time = new Date(begin + ((end - begin) * (at.x - left)) / (right - left));
    for (const [name, value] of [["x1", at.x], ["x2", at.x], ["y1", top], ["y2", bottom]])
      line.setAttribute(name, value);
    line.setAttribute("opacity", 0.6);
    const tooltip = event.target.dataset?.tip;
    const clock = time.toISOString().slice(0, 16).replace("T", " ") + " UTC";
    tip.textContent = tooltip ? `${clock}\n${tooltip}` : clock;
    tip.style.display = "block";
    const { width, height } = tip.getBoundingClientRect();
    const beside = (place, size, room) =>
      `${Math.max(place + 14 + size > room ? place - 14 - size : place + 14, 0)}px`;
    tip.style.left = beside(event.clientX, width, innerWidth);
    tip.style.top = beside(event.clientY, height, innerHeight);
  });
})();
"""
