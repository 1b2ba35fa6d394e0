"use strict";
// Filters the list of rules by the words that a reader types. Without it, the page is a list to unfold.

document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("find-rule");
  if (form === null) return;
  const stages = [...document.querySelectorAll("article details")].map(fold => ({
    fold, section: fold.closest("section"), rules: [...fold.querySelectorAll("li")],
  }));
  const input = form.querySelector("input"), count = form.querySelector("output");
  form.hidden = false;

  function filter() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const {fold, section, rules} of stages) {
      let here = 0;
      for (const rule of rules) {
        rule.hidden = !words.every(word => rule.textContent.toLowerCase().includes(word));
        here += !rule.hidden;
      }
      fold.open = words.length > 0 && here > 0;
      section.hidden = here === 0;
      found += here;
    }
    count.textContent = words.length ? `${found} ${found === 1 ? "rule" : "rules"}` : "";
  }

  input.addEventListener("input", filter);
  if (input.value) filter(); // a browser may keep it when the page is loaded again
});
