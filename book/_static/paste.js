"use strict";
// Explains a failure that a reader pastes: what happened, what to do, and last the rule. It reads messages.js, the table
// of `diagnose explain`, and sends nothing anywhere. `answer`, `sentence` and `fixes` work without a page, so that a test
// can compare them with Python.

const bugZooPaste = (() => {
  const LONGEST = 12000; // characters of one message that are searched, as in Python
  const MOST_LINES = 60; // of a message that goes over several lines
  const ESCAPES = /\u001b\[[0-9;?]*[ -/]*[@-~]/g;
  const PREFIX = /^(?:\[(?:rank|default)\d+\]:\s?|\d{1,3}:\s(?=\s|Traceback|\w+Error))/;
  const EXCEPTION = /^\s*(?:E\s{2,})?(?:[A-Za-z_]\w*\.)*((?:[A-Z]\w*)?(?:Error|Exception|Exit|Interrupt|Failure|NotMet))(?::\s?(.*))?$/;
  const AFTER_FRAME = /^(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?::\s?(.*))?$/; // whatever a traceback ends with is an exception
  const GAVE_UP = /(?:what\(\):\s*|(?=\[[^\]\n]{0,99}Rank \d+\] Watchdog caught))(.+)/; // an abort of C++, or NCCL's log
  const QUOTED = /`([^`]{6,})`|"([^"]{6,})"/g;
  const BOUNDARY = /^(?:Traceback \(most recent|\s+File "|During handling of|The above exception)/;
  const FRAME = /^\s*(?:File "([^"]+)", line (\d+)|([\w./\\-]+\.py):(\d+): )/;
  const LIBRARY = /site-packages|dist-packages|[/\\]lib[/\\]python|^<|[/\\]Lib[/\\]/;
  const SETTING = /\b(?:[A-Z][A-Z0-9_]{5,40}=[\w.:-]{1,40}|[a-z_]{5,40}=(?:True|False|None|\d{1,9})\b)/g;
  const ADVICE = /consider|\btry|passing|please|hint|should|need to|suggest|by (?:setting|adding)|you can/i;
  const LAUNCHERS = new Set(["launcher-failure", "worker-failure"]); // they report a failure that came before

  function lines(text) {
    return text.replace(ESCAPES, "").split(/\r?\n/).map(line => line.replace(PREFIX, ""));
  }

  function exceptions(all) {
    // [{name, message}], in the order of the text; a message ends where another traceback begins.
    const found = [];
    let inFrame = false;
    all.forEach((line, start) => {
      const match = EXCEPTION.exec(line) ?? (inFrame && AFTER_FRAME.exec(line));
      inFrame = FRAME.test(line) || (inFrame && /^\s/.test(line));
      const gaveUp = match ? null : GAVE_UP.exec(line);
      if (gaveUp) found.push({name: "DistBackendError", message: gaveUp[1]});
      if (!match) return;
      const message = [match[2] ?? ""];
      let node = false; // TensorFlow has the frames of a node of its graph within the message
      for (let place = start + 1; place < all.length && message.length < MOST_LINES; place++) {
        node ||= /defined at \(most recent call last\):?\s*$/.test(all[place]);
        if (node && (FRAME.test(all[place]) || !all[place].trim())) continue;
        if (BOUNDARY.test(all[place])) break;
        message.push(all[place]);
      }
      found.push({name: match[1], message: message.join("\n").trim()});
    });
    return found;
  }

  function frames(all) {
    return all.map(line => FRAME.exec(line)).filter(Boolean).map(match => ({
      file: (match[1] ?? match[3]).replaceAll("\\", "/"), line: match[2] ?? match[4],
    }));
  }

  function matches(row, texts, files, whole) {
    const beside = row.beside ? new RegExp(row.beside, "u").exec(whole) : null;
    if (row.beside && beside === null) return null;
    if (row.within && files.length && !files.some(file => new RegExp(row.within, "u").test(file))) return null;
    if (row.at && !new RegExp(row.at, "u").test(files.at(-1) ?? "")) return null;
    row.compiled ??= new RegExp(row.pattern, "u");
    for (const text of texts) {
      const match = row.compiled.exec(text);
      if (match !== null && match[0] !== "") return {groups: {...match.groups, ...beside?.groups}, said: match[0]};
    }
    return null;
  }

  function first(table, texts, files, whole, wanted) {
    for (const row of table) {
      const match = wanted(row) && matches(row, texts, files, whole);
      if (match) return {row, whole, ...match};
    }
    return null;
  }

  function answer(text, table) {
    // {found, perhaps, exception, own}: rows that match with their groups or null, the exception told, the reader's frame.
    const all = lines(text);
    const raised = exceptions(all).reverse(); // the last failure first
    const seen = frames(all);
    const files = seen.map(frame => frame.file);
    const own = seen.filter(frame => !LIBRARY.test(frame.file)).at(-1) ?? null;
    const shorten = said => said.length > LONGEST ? `${said.slice(0, LONGEST / 2)}\n${said.slice(-LONGEST / 2)}` : said;
    const told = raised.map(({name, message}) => [shorten(message), `${name}: ${shorten(message)}`]);
    const whole = all.join("\n");
    if (seen.length === 0) {
      told.push([...whole.matchAll(QUOTED)].map(match => match[1] ?? match[2]), [shorten(whole)]);
    }
    const hits = wanted => told.map(texts => first(table, texts, files, whole, wanted)).filter(Boolean);
    const known = hits(row => !row.needs);
    const found = known.find(hit => !LAUNCHERS.has(hit.row.rule)) ?? known[0] ?? null;
    const perhaps = found ? null : hits(row => row.needs)[0] ?? null;
    return {found, perhaps, exception: raised[0]?.name ?? null, own};
  }

  function filled(template, groups) {
    return template.replace(/\{\{|\}\}|\{(\w+)\}/g, (found, name) =>
      name ? (groups[name] ?? "").trim().replace(/\s+/g, " ") : found[0]);
  }

  function sentence({row, groups}) {
    // What happened, as `diagnose explain` says it; empty where that depends on more than the words of the message.
    return filled(row.cause, groups).replace(/ \((?:, )?\)/g, "").replace(/: $/, "");
  }

  function fixes({row, groups, whole}) {
    // What the text shows to have been done already comes last.
    const told = whole.split("\n").filter(line => !ADVICE.test(line));
    const done = fix => (fix.match(SETTING) ?? []).some(setting => told.some(line => line.includes(setting)));
    const all = row.fixes.map(fix => filled(fix, groups));
    return [...all.filter(fix => !done(fix)), ...all.filter(done)];
  }

  function verdict(words) {
    // The first sentence stands out.
    const [first, ...rest] = words.split(/(?<=\.)\s+(?=[A-Z])/);
    const parts = bugZooDom.prose(first);
    parts[0].className = "verdict";
    return [...parts, ...bugZooDom.prose(rest.join(" "))];
  }

  function explained(hit, exhibits) {
    const {cages, element, link, prose} = bugZooDom;
    const {row, said} = hit;
    const words = sentence(hit);
    const parts = verdict(words || `This message belongs to the rule \`${row.rule}\`.`);
    if (!words) {
      parts.push(element("p", ["The message: ", element("code", said)]));
      if (row.proves) parts.push(...prose(`It proves: ${row.proves}.`));
      if (row.unknown) parts.push(...prose(`It does not tell: ${row.unknown}.`));
    }
    parts.push(element("h2", "What to do"));
    if (row.fixes.length) parts.push(element("ul", fixes(hit).map(fix => element("li", prose(fix)))));
    else parts.push(...prose(`The fix depends on the values: \`diagnose explain traceback.txt\` names it. The rule's own example:\n\n${row.fix}`));
    const named = element("p", ["The rule is ", link(`rules/${row.rule}`, row.rule), "."], {className: "rule"});
    return [...parts, ...cages(exhibits[row.rule] ?? []), named];
  }

  function shown({found, perhaps, exception, own}, exhibits) {
    if (found) return explained(found, exhibits);
    const {element, link, prose} = bugZooDom;
    const parts = perhaps
      ? verdict(`Perhaps: ${perhaps.row.title}`)
      : verdict("This page does not know the message.");
    if (perhaps) parts.push(...prose(`The message alone does not prove it. What would: ${perhaps.row.needs}.`));
    else parts.push(...prose("Many failures are a missing file, a network that is down, or a bug in your own code."));
    if (exception) parts.push(...prose(`The exception is \`${exception}\`.`));
    if (own) parts.push(...prose(`Start at the last line of your own code: \`${own.file}\`, line ${own.line}.`));
    parts.push(...prose("`diagnose explain traceback.txt` reads more than this page, and `diagnose run train.py` sees the \
tensors themselves."));
    if (perhaps) {
      const {rule} = perhaps.row;
      parts.push(element("p", ["The rule is ", link(`rules/${rule}`, rule), "."], {className: "rule"}));
    }
    return parts;
  }

  function start() {
    const box = document.getElementById("pasted"), result = document.getElementById("explained");
    if (box === null || result === null) return;
    const {messages, exhibits} = window.bugZoo;
    document.getElementById("paste-form").hidden = false;
    let waiting = 0;
    const tell = () => {
      const text = box.value.trim();
      result.replaceChildren(...(text ? shown(answer(text, messages), exhibits) : []));
    };
    box.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(tell, 150); });
    document.getElementById("forget").addEventListener("click", () => { box.value = ""; tell(); box.focus(); });
    if (box.value) tell(); // a browser may keep it when the page is loaded again
  }

  return {answer, fixes, sentence, start};
})();

if (typeof module === "undefined") {
  document.addEventListener("DOMContentLoaded", bugZooPaste.start);
} else {
  module.exports = bugZooPaste;
}
