"use strict";
// Shows a JSON report of `diagnose` that a reader opens, and sends nothing anywhere. `read` works without a page, so
// that a test can compare it with the schema of the report as Python reads it.

const bugZooReport = (() => {
  const LARGEST = 32 * 2 ** 20; // bytes of a file; a rank's report has a few hundred thousand
  const SHOWN = 4000; // characters of one text, as in the HTML report
  const WRITE = "`diagnose run --output report.json train.py` writes one.";
  const MARKS = {passed: "\u2713", stopped: "\u2717", failed: "\u2717", "not judged": "-", "not reached": "\u00b7"};
  const TYPES = {
    array: Array.isArray, boolean: value => typeof value === "boolean", integer: Number.isInteger,
    null: value => value === null, number: value => typeof value === "number", string: value => typeof value === "string",
    object: value => typeof value === "object" && value !== null && !Array.isArray(value),
  };

  function misfit(value, schema, root, path = "") {
    // What of a value does not fit a schema, in words, or null. It knows the keywords that the report's schema uses.
    const place = path || "the whole";
    if (schema.$ref) return misfit(value, root.$defs[schema.$ref.split("/").at(-1)], root, path);
    for (const part of schema.allOf ?? []) {
      const found = misfit(value, part, root, path);
      if (found) return found;
    }
    if (schema.anyOf) {
      const found = schema.anyOf.map(part => misfit(value, part, root, path));
      if (!found.includes(null)) return found.at(-1);
    }
    if (schema.type && ![schema.type].flat().some(type => TYPES[type](value))) {
      return `${place} should be of type ${[schema.type].flat().join(" or ")}`;
    }
    if ("const" in schema && value !== schema.const) return `${place} should be ${JSON.stringify(schema.const)}`;
    if (schema.enum && !schema.enum.includes(value)) return `${place} should be one of ${schema.enum.join(", ")}`;
    if (schema.pattern && TYPES.string(value) && !new RegExp(schema.pattern, "u").test(value)) {
      return `${place} does not look like the name of a rule`;
    }
    if ("minimum" in schema && TYPES.number(value) && value < schema.minimum) return `${place} is below ${schema.minimum}`;
    if (TYPES.object(value)) {
      const missing = (schema.required ?? []).find(name => !Object.hasOwn(value, name));
      if (missing) return `${place} has no \`${missing}\``;
      const others = TYPES.object(schema.additionalProperties) ? schema.additionalProperties : null;
      for (const [name, part] of Object.entries(value)) {
        const known = Object.hasOwn(schema.properties ?? {}, name) ? schema.properties[name] : others;
        const found = known && misfit(part, known, root, path ? `${path}.${name}` : name);
        if (found) return found;
      }
    }
    if (Array.isArray(value) && schema.items) {
      for (const [number, part] of value.entries()) {
        const found = misfit(part, schema.items, root, `${path}[${number}]`);
        if (found) return found;
      }
    }
    return null;
  }

  function read(text, schema) {
    // {report} of a JSON report's text, or {problem}: in words, with code in backticks, why it is none.
    const known = schema.properties.version.const;
    let report;
    try {
      report = JSON.parse(text.replace(/^\ufeff/, ""));
    } catch {
      if (!text.trim()) return {problem: `The file is empty. ${WRITE}`};
      if (/^\s*<(?:!doctype|html)/i.test(text)) {
        return {problem: "This is a page of HTML. If it is a report, open it in your browser as it is: it needs no other page."};
      }
      if (/^\s*[{[]/.test(text)) {
        return {problem: "This begins like JSON, and does not go on as JSON: perhaps it was cut off, or two reports were written \
into one file. Let `diagnose` write it once more."};
      }
      return {problem: `This is not JSON. ${WRITE}`};
    }
    if (!TYPES.object(report) || !("version" in report && "findings" in report)) {
      return {problem: `This is JSON, but no report of \`diagnose\`: a report has a \`version\` and \`findings\`. ${WRITE}`};
    }
    if (report.version !== known) {
      return {problem: `This report's layout has the version ${JSON.stringify(report.version)}, and this page reads version ${known}. \
Open it with the book that belongs to the \`diagnose\` which wrote it, or run your script again.`};
    }
    const found = misfit(report, schema, schema);
    return found ? {problem: `This looks like a report, but not as \`diagnose\` writes it: ${found}.`} : {report};
  }

  function count(number, word) {
    return `${number} ${word}${number === 1 ? "" : "s"}`;
  }

  function verdict({findings, crash, ok, script, exit_code: code, title}) {
    const counts = ["error", "warning", "note"]
      .map(severity => [findings.filter(finding => finding.severity === severity).length, severity])
      .filter(([number]) => number).map(([number, severity]) => count(number, severity));
    const what = counts.length ? counts.join(", ") : crash ? "An exception that no rule recognises"
      : ok ? "Nothing found" : "No findings, but a stage could not run";
    const named = script === null || title.includes(script);
    return `${what}${named ? "" : ` in ${script}`}${named || !code ? "" : `, which ended with exit code ${code}`}.`;
  }

  function shortened(text) {
    if (text.length <= SHOWN) return text;
    const head = Math.floor(SHOWN * 2 / 3), tail = Math.floor(SHOWN / 3);
    return `${text.slice(0, head)} … [${(text.length - head - tail).toLocaleString("en")} of ${text.length.toLocaleString("en")} characters left out] … ${text.slice(-tail)}`;
  }

  const told = text => bugZooDom.visible(shortened(String(text)));
  function plain(value, depth = 0) {
    // Evidence in a line. What is nested deeper than any evidence of ours is left out: it would overflow the stack.
    if (depth > 8) return "…";
    if (Array.isArray(value)) return value.map(part => plain(part, depth + 1)).join(", ");
    if (TYPES.object(value)) return Object.entries(value).map(([key, part]) => `${key}: ${plain(part, depth + 1)}`).join("; ");
    return typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(6))) : String(value);
  }

  function folded(summary, content) {
    const {element} = bugZooDom;
    return element("details", [element("summary", summary), ...[content].flat()]);
  }

  function table(head, rows, label) {
    const {element} = bugZooDom;
    const heads = element("tr", head.map(name => element("th", name, {scope: "col"})));
    const body = rows.map(([first, ...others]) => element("tr", [
      element("th", first, {scope: "row"}), ...others.map(cell => element("td", cell)),
    ]));
    const made = element("table", [element("thead", heads), element("tbody", body)], {className: "table"});
    const box = element("div", made, {className: "scroll", tabIndex: 0});
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", label);
    return box;
  }

  function ruleLink(rule, rules) {
    // A rule that this book does not know is one of the reader's own, or of another version.
    return Object.hasOwn(rules, rule) ? bugZooDom.link(`rules/${rule}`, rule) : told(rule);
  }

  function preformatted(text) {
    const {element} = bugZooDom;
    return element("pre", element("code", told(text)), {tabIndex: 0});
  }

  function findingCard(finding, rules) {
    const {cages, element} = bugZooDom;
    const places = [
      ...(finding.step === null ? [] : [`step ${finding.step}`]),
      ...(finding.where === null ? [] : [told(`${finding.where.file}:${finding.where.line} in ${finding.where.function}`)]),
    ];
    const [message, ...more] = finding.message.split("\n");
    const parts = [element("h3", [`${finding.severity}: `, ruleLink(finding.rule, rules)])];
    if (places.length) parts.push(element("p", places.join(", "), {className: "place"}));
    parts.push(element("p", told(message)));
    if (more.length) parts.push(preformatted(more.join("\n")));
    parts.push(element("p", "What to change", {className: "label"}), preformatted(finding.fix));
    for (const other of finding.alternatives) parts.push(element("p", "Or", {className: "label"}), preformatted(other));
    if (finding.consequences.length) {
      parts.push(element("p", "Also caused", {className: "label"}), element("ul", finding.consequences.map(one =>
        element("li", [ruleLink(one.rule, rules), `: ${told(one.message.split("\n")[0])}`]))));
    }
    if (finding.other_trainings) parts.push(element("p", `The same in ${count(finding.other_trainings, "other training")} of this script.`));
    const evidence = Object.entries(finding.evidence).filter(([, value]) => value !== null && value !== "");
    if (evidence.length) {
      const rows = evidence.map(([name, value]) => [told(name), told(plain(value))]);
      parts.push(folded("Evidence", table(["name", "value"], rows, `evidence for ${finding.rule}`)));
    }
    parts.push(...cages(Object.hasOwn(rules, finding.rule) ? rules[finding.rule] : []));
    return element("article", parts, {className: "finding"});
  }

  function exception({exception: name, message, frames}) {
    const {element} = bugZooDom;
    const parts = [element("h3", "The exception"), preformatted(name ? `${name}: ${message}` : message)];
    const own = frames.filter(frame => frame.yours).at(-1);
    if (own) parts.push(element("p", ["The last line of your code: ", element("code", told(`${own.file}:${own.line}`))]));
    if (frames.length) {
      const rows = frames.map(frame => [told(`${frame.file}:${frame.line}`), told(frame.function), told(frame.code ?? "")]);
      parts.push(folded("The traceback", table(["place", "function", "code"], rows, "lines of the traceback, the outermost first")));
    }
    return parts;
  }

  function shown(report, rules) {
    const {element} = bugZooDom;
    const list = items => element("ul", items.map(item => element("li", item)));
    const parts = [element("h2", told(report.title)), element("p", told(verdict(report)), {className: "verdict"})];
    if (report.rank) parts.push(element("p", told(`Rank ${report.rank.number} of ${report.rank.world}, on ${report.rank.host}.`)));
    if (report.crash) parts.push(...exception(report.crash));
    parts.push(...report.findings.map(finding => findingCard(finding, rules)));
    const seen = report.stages.filter(stage => stage.status !== "not reached");
    if (seen.length) {
      const rows = seen.map(({name, status, detail}) => [told(name), `${MARKS[status]} ${status}`, told(detail)]);
      parts.push(element("h3", "Stages"), table(["stage", "outcome", "detail"], rows, "stages of the pipeline"));
    }
    const ignored = [
      ...Object.entries(report.ignored).map(([rule, why]) => [ruleLink(rule, rules), why ? `: ${told(why)}` : ""]),
      ...report.ignored_in_vain.map(rule => [ruleLink(rule, rules), ": unused ignore"]),
    ];
    if (ignored.length) parts.push(element("h3", "Ignored"), list(ignored));
    if (report.faults.length) {
      parts.push(element("h3", "Internal errors"), element("p", "These are errors in diagnostics itself, not in your program."));
      parts.push(list(report.faults.map(told)));
    }
    if (report.not_applicable.length) {
      const rows = report.not_applicable.map(rule => [ruleLink(rule, rules), told(report.reasons?.[rule] ?? "")]);
      const summary = `${count(rows.length, "rule")} lacked evidence; this is not the same as clean`;
      parts.push(folded(summary, table(["rule", "why"], rows, "rules that could not be checked")));
    }
    return parts;
  }

  function start() {
    const form = document.getElementById("report-form"), result = document.getElementById("opened-report");
    if (form === null || result === null) return;
    const {element, prose} = bugZooDom;
    const {schema, rules} = window.bugZooReports;
    const picked = document.getElementById("report-file"), close = document.getElementById("close-report");
    const show = parts => {
      result.replaceChildren(...parts);
      close.hidden = false;
      const heading = result.querySelector("h2");
      heading.tabIndex = -1;
      heading.focus(); // a screen reader goes on from here, and a phone scrolls to it
    };
    const refuse = (name, problem) => show([element("h2", `Not opened: ${told(name)}`), ...prose(told(problem))]);
    const open = async files => {
      if (files.length !== 1) return refuse(count(files.length, "file"), "This page shows one report at a time.");
      const [file] = files;
      if (file.size > LARGEST) return refuse(file.name, "It is too large for a report. `diagnose join` reads folders of them.");
      let text;
      try {
        text = await file.text();
      } catch { // a folder, or a file that is gone
        return refuse(file.name, "Your browser cannot read it. Is it a folder, or has it been moved?");
      }
      const {report, problem} = read(text, schema);
      if (problem) refuse(file.name, problem);
      else show(shown(report, rules));
    };
    form.hidden = false;
    picked.addEventListener("change", () => { if (picked.files.length) open([...picked.files]); });
    picked.addEventListener("click", () => { picked.value = ""; }); // the same file may be opened again
    const brings = event => event.dataTransfer.types.includes("Files"); // and not a word that is dragged into the search
    for (const name of ["dragover", "dragenter"]) {
      window.addEventListener(name, event => {
        if (!brings(event)) return;
        event.preventDefault();
        form.classList.add("dropping");
      });
    }
    for (const name of ["dragleave", "drop"]) window.addEventListener(name, () => form.classList.remove("dropping"));
    window.addEventListener("drop", event => { // anywhere: a file that misses the box would be opened in this page's place
      if (!brings(event)) return;
      event.preventDefault();
      if (event.dataTransfer.files.length) open([...event.dataTransfer.files]);
    });
    close.addEventListener("click", () => {
      picked.value = "";
      result.replaceChildren();
      close.hidden = true;
      picked.focus();
    });
  }

  return {read, start};
})();

if (typeof module === "undefined") {
  document.addEventListener("DOMContentLoaded", bugZooReport.start);
} else {
  module.exports = bugZooReport;
}
