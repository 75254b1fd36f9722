// What the locators of Firefox and WebKit do in the page. Steps narrow down a list of elements; `act` does
// one thing with what is left.
(() => {
  const ROLES = {
    alert: "[role=alert]",
    banner: "body > header, [role=banner]",
    button: "button, [role=button], input[type=button], input[type=submit], input[type=file]",
    complementary: "aside, [role=complementary]",
    dialog: "dialog, [role=dialog]",
    log: "[role=log]",
    main: "main, [role=main]",
    status: "[role=status], output",
  };
  const plain = (text) => (text ?? "").replace(/\s+/g, " ").trim();
  const accessible = (node) =>
    node.checkVisibility({ visibilityProperty: true }) && !node.closest("[aria-hidden=true]");
  const named = (node) => {
    const by = node.getAttribute("aria-labelledby");
    if (by) return by.split(/\s+/).map((id) => plain(document.getElementById(id)?.textContent)).join(" ");
    const label = node.getAttribute("aria-label");
    if (label) return label;
    if (node.labels?.length) return [...node.labels].map((one) => one.textContent).join(" ");
    return node.textContent.trim() || node.title || node.alt || "";
  };
  const has = (text, part) => plain(text).toLowerCase().includes(plain(part).toLowerCase());
  const inside = (roots, selector) => {
    const found = new Set();
    for (const root of roots) for (const node of root.querySelectorAll(selector)) found.add(node);
    return [...found];
  };
  const narrow = {
    css: (nodes, selector) => inside(nodes, selector),
    role: (nodes, [role, name]) =>
      inside(nodes, ROLES[role] ?? `[role=${role}]`).filter(
        (node) => accessible(node) && (name === null || has(named(node), name)),
      ),
    label: (nodes, text) =>
      inside(nodes, "input, textarea, select, [aria-label]").filter((node) =>
        [node.getAttribute("aria-label"), ...[...(node.labels ?? [])].map((one) => one.textContent)].some(
          (one) => one && has(one, text),
        ),
      ),
    text: (nodes, text) => nodes.filter((node) => has(node.textContent, text)),
    nth: (nodes, index) => [nodes.at(index)].filter(Boolean),
  };
  const visible = (node) => {
    const { width, height } = node.getBoundingClientRect();
    return width > 0 && height > 0 && getComputedStyle(node).visibility !== "hidden";
  };
  const enabled = (node) => !node.matches(":disabled");
  const find = (steps) => steps.reduce((nodes, [kind, detail]) => narrow[kind](nodes, detail), [document]);
  const one = (steps) => {
    const nodes = find(steps);
    if (nodes.length > 1) throw new Error(`${nodes.length} elements where one is meant`);
    return nodes[0];
  };
  const ACTS = {
    count: (steps) => find(steps).length,
    texts: (steps) => find(steps).map((node) => node.innerText),
    inner_text: (steps) => one(steps)?.innerText,
    text_content: (steps) => one(steps)?.textContent,
    value: (steps) => one(steps)?.value,
    attribute: (steps, name) => [one(steps)?.getAttribute(name) ?? null],
    state: (steps) => {
      const node = one(steps);
      if (!node) return { attached: false };
      return {
        attached: true, visible: visible(node), enabled: enabled(node), checked: node.checked === true,
        focused: node === node.getRootNode().activeElement,
      };
    },
    // Where to click: once the element is there, can be used and is not covered by another one.
    place: (steps) => {
      const node = one(steps);
      if (!node || !visible(node) || !enabled(node)) return undefined;
      node.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
      const { x, y, width, height } = node.getBoundingClientRect();
      const [left, top] = [Math.floor(x + width / 2), Math.floor(y + height / 2)];
      const hit = document.elementFromPoint(left, top);
      if (!hit || !(node.contains(hit) || hit.contains(node) || hit.closest("label")?.control === node)) return undefined;
      return [left, top];
    },
    fill: (steps, text) => {
      const node = one(steps);
      if (!node || !visible(node) || !enabled(node)) return undefined;
      node.focus();
      const prototype = node instanceof HTMLTextAreaElement ? HTMLTextAreaElement : HTMLInputElement;
      Object.getOwnPropertyDescriptor(prototype.prototype, "value").set.call(node, text);
      node.dispatchEvent(new InputEvent("input", { bubbles: true, data: text }));
      node.dispatchEvent(new Event("change", { bubbles: true }));
      return true;
    },
    focus: (steps) => {
      const node = one(steps);
      if (!node || !visible(node)) return undefined;
      node.focus();
      return true;
    },
    files: (steps, files) => {
      const node = one(steps);
      if (!node) return undefined;
      const chosen = new DataTransfer();
      for (const { name, type, base64 } of files) {
        const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
        chosen.items.add(new File([bytes], name, { type }));
      }
      node.files = chosen.files;
      node.dispatchEvent(new Event("input", { bubbles: true }));
      node.dispatchEvent(new Event("change", { bubbles: true }));
      return true;
    },
  };
  return ([steps, act, detail]) => ACTS[act](steps, detail);
})()
