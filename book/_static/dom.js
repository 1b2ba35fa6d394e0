"use strict";
// Makes elements out of text for the pages that show what a reader brings. Text stays text: nothing here parses HTML.

const bugZooDom = (() => {
  // The characters that diagnostics.text.visible escapes: controls, direction marks, zero-width characters, halves of pairs.
  const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]/gu;

  function visible(text) {
    return text.replaceAll("\r\n", "\n").replace(UNSEEN, unseen => {
      const code = unseen.charCodeAt(0).toString(16);
      return code.length < 3 ? `\\x${code.padStart(2, "0")}` : `\\u${code.padStart(4, "0")}`;
    });
  }

  function element(name, content = [], attributes = {}) {
    const made = Object.assign(document.createElement(name), attributes);
    made.append(...[content].flat());
    return made;
  }

  function prose(markdown) {
    // Paragraphs, code in backticks and fenced code: what the pages of the rules use.
    return markdown.split(/^```\w*\n([\s\S]*?)^```$/m).flatMap((part, place) => place % 2
      ? [element("pre", element("code", part.trimEnd()), {tabIndex: 0})]
      : part.split(/\n{2,}/).filter(paragraph => paragraph.trim()).map(paragraph =>
        element("p", paragraph.replace(/\[([^\]]+)\]\([^)]*\)/g, "$1").split(/`([^`]+)`/).map((piece, odd) =>
          odd % 2 ? element("code", piece) : piece))));
  }

  function link(page, words) {
    return element("a", words, {href: `${page}.html`});
  }

  function cages(exhibits) {
    // A sentence that leads to the exhibits, given as [page, title]; nothing if there are none.
    const named = exhibits.flatMap(([page, title]) => [" ", link(page, title), "."]);
    return named.length ? [element("p", ["See it happen, and fix it:", ...named])] : [];
  }

  return {cages, element, link, prose, visible};
})();

if (typeof module !== "undefined") module.exports = bugZooDom;
