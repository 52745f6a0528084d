// Sorts a table by a click on a column's head. SPDX-License-Identifier: Apache-2.0 OR MIT
"use strict";
const isEmpty = (key) => key === "" || key === "-";
const isNumber = (key) => key !== "" && !isNaN(key);

function sort(table, head) {
  const key = (body) => {
    const cell = body.rows[0].cells[head.cellIndex];
    return cell.dataset.value ?? cell.textContent;
  };
  const bodies = [...table.tBodies];
  // Of numbers, a word such as `failed` is none: it comes last.
  const keys = bodies.map(key).filter((text) => !isEmpty(text));
  const areNumbers = 2 * keys.filter(isNumber).length >= keys.length;
  const isLast = areNumbers ? (text) => !isNumber(text) : isEmpty;
  const before = head.getAttribute("aria-sort");
  const isDown = areNumbers ? before !== "descending" : before === "ascending";
  bodies.sort((one, other) => {
    const [a, b] = [key(one), key(other)];
    if (isLast(a) !== isLast(b)) return isLast(a) - isLast(b);
    const order = areNumbers && !isLast(a) ? a - b : a.localeCompare(b, undefined, { numeric: true });
    return isDown ? -order : order;
  });
  table.append(...bodies);
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
}

for (const table of document.querySelectorAll("table")) {
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.onclick = () => sort(table, head);
    head.append(button);
  }
}
