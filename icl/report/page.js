"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  // A browser may refuse storage to pages from disk.
  const stored = (key, value) => {
    try {
      if (value === undefined) return localStorage.getItem(key);
      localStorage.setItem(key, value);
    } catch { /* the choice lasts as long as the page */ }
    return null;
  };
  const chosen = stored("icl-theme");
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;

  const theme = () => {
    const button = document.getElementById("theme");
    const system = matchMedia("(prefers-color-scheme: dark)");
    const dark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
    const show = () => { button.textContent = dark() ? "Light" : "Dark"; };
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      stored("icl-theme", root.dataset.theme);
      show();
    });
    system.addEventListener("change", show);
    show();
  };

  // What is shown: of which paper, of which kind, with which verdict, with which words. The URL keeps it.
  const filter = () => {
    const fields = { q: "filter", paper: "of-paper", kind: "of-kind" };
    const box = Object.fromEntries(Object.entries(fields).map(([key, id]) => [key, document.getElementById(id)]));
    const count = document.getElementById("count");
    const buttons = [...document.querySelectorAll("[data-show]")];
    const rows = [...document.querySelectorAll("[data-kind]")];
    const holders = [...document.querySelectorAll("[data-hides]")].reverse(); // the inner ones first
    const total = rows.filter((row) => "statement" in row.dataset).length;
    const about = (row) => {
      const figure = row.closest("article.figure");
      const target = row.matches("a[href^='#']") && document.getElementById(row.getAttribute("href").slice(1));
      return [figure && figure.querySelector("h4").textContent, target && target.textContent, row.textContent].join(" ").toLowerCase();
    };
    const text = new Map(rows.map((row) => [row, about(row)]));
    let verdict = "";
    const kept = () => {
      const chosen = { q: box.q.value.trim(), paper: box.paper ? box.paper.value : "", kind: box.kind.value, verdict };
      const query = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value)).toString();
      try {
        history.replaceState(null, "", (query ? "?" + query : location.pathname) + location.hash);
      } catch { /* a browser may refuse it to pages from disk */ }
    };
    const apply = () => {
      const words = box.q.value.toLowerCase().split(/\s+/).filter(Boolean);
      const paper = box.paper ? box.paper.value : "";
      const kind = box.kind.value;
      const fits = ({ dataset }) => (!verdict || dataset.kind === verdict || (verdict === "unexpected" && "unexpected" in dataset))
        && (!paper || dataset.paper === paper) && (!kind || dataset.of === kind);
      let shown = 0;
      for (const row of rows) {
        row.hidden = !(fits(row) && words.every((word) => text.get(row).includes(word)));
        if (row.matches(".tile")) row.parentElement.hidden = row.hidden;
        shown += !row.hidden && "statement" in row.dataset ? 1 : 0;
      }
      for (const holder of holders) {
        const inside = [...holder.querySelectorAll("[data-kind]")];
        holder.hidden = inside.length > 0 && inside.every((row) => row.hidden);
      }
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.show === verdict));
      count.textContent = shown === total ? `${total} statements` : `${shown} of ${total} statements`;
      kept();
    };
    const given = new URLSearchParams(location.search);
    for (const [key, field] of Object.entries(box)) if (field && given.get(key)) field.value = given.get(key);
    if (buttons.some((button) => button.dataset.show === given.get("verdict"))) verdict = given.get("verdict");
    for (const button of buttons) {
      button.addEventListener("click", () => {
        verdict = button.dataset.show;
        apply();
      });
    }
    for (const field of Object.values(box)) if (field) field.addEventListener("input", apply);
    // A link must not lead to what is filtered away, and leads to the evidence.
    const arrived = () => {
      const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (!target) return;
      if (target.closest("[hidden]")) {
        for (const field of Object.values(box)) if (field) field.value = "";
        verdict = "";
        apply();
      }
      if (target.matches("tbody")) for (const details of target.querySelectorAll(".more > td > details")) details.open = true;
      target.scrollIntoView();
    };
    addEventListener("hashchange", arrived);
    apply();
    if (location.hash) arrived();
  };

  // The library's closed forms (icl.theory), letter by letter.
  const closed = {
    one_layer: ({ d, n }) => d * (d + 1) / (n + d + 1),
    gap: ({ d, C, "|w*|": norm }) => 2 * norm ** 2 / (d * C + 2),
    heads: ({ d, C, H, "|w*|": norm }) => {
      const lost = Math.max(d - H, 0);
      const kappa = 2 * lost * (d * C + 2) / (C * (H * C + 2));
      const rho = 2 * d * (1 + (d + 1) / C);
      return (C / (d * C + 2)) ** 2 * kappa * rho / (kappa + rho) * norm ** 2;
    },
  };
  const trying = () => {
    for (const card of document.querySelectorAll("[data-form]")) {
      const form = closed[card.dataset.form];
      const inputs = [...card.querySelectorAll("input")];
      if (!form || !inputs.length) continue;
      const last = inputs[inputs.length - 1];
      const show = () => {
        const at = Object.fromEntries(inputs.map((input) => [input.name, Number(input.value)]));
        const value = form(at);
        for (const input of inputs) input.nextElementSibling.textContent = input.value;
        const output = card.querySelector(".value");
        output.textContent = value.toPrecision(4);
        output.dataset.value = String(value);
        const [low, high, x] = [Number(last.min), Number(last.max), Number(last.value)];
        const ys = [...Array(121).keys()].map((i) => form({ ...at, [last.name]: low + (high - low) * i / 120 }));
        const top = Math.max(...ys) || 1;
        const place = (t, y) => `${(6 + 288 * t).toFixed(1)} ${(74 - 68 * y / top).toFixed(1)}`;
        card.querySelector("path").setAttribute("d", "M" + ys.map((y, i) => place(i / 120, y)).join("L"));
        const [cx, cy] = place((x - low) / (high - low), value).split(" ");
        card.querySelector("circle").setAttribute("cx", cx);
        card.querySelector("circle").setAttribute("cy", cy);
      };
      for (const input of inputs) input.addEventListener("input", show);
      show();
    }
  };

  const copying = () => {
    for (const button of document.querySelectorAll("[data-copy]")) {
      button.addEventListener("click", async () => {
        let said = "copied";
        try {
          await navigator.clipboard.writeText(button.dataset.copy);
        } catch {
          getSelection().selectAllChildren(button.previousElementSibling);
          said = document.execCommand("copy") ? "copied" : "press Ctrl+C";
        }
        button.textContent = said;
        setTimeout(() => { button.textContent = "copy"; }, 2000);
      });
    }
  };

  // While results come in, a page that nobody is reading further down reloads by itself.
  const reloading = () => {
    const fresh = () => Date.now() - Date.parse(document.lastModified) < 30 * 60 * 1000;
    const idle = () => scrollY < 200 && !location.hash && !location.search && !document.querySelector("details[open]")
      && !document.getElementById("filter").value && getSelection().isCollapsed && !document.hidden;
    if (!fresh()) return;
    document.getElementById("reload-hint").textContent = "It reloads by itself while it is scrolled to the top.";
    setInterval(() => { if (idle() && fresh()) location.reload(); }, 5000);
  };

  // Pictures load as they are scrolled to; paper has no scrolling, so that those it shows load at leisure.
  const pictures = () => {
    for (const image of document.querySelectorAll("img:not(.only-dark)")) image.loading = "eager";
  };

  addEventListener("load", () => setTimeout(pictures, 1000));
  document.addEventListener("DOMContentLoaded", () => {
    theme();
    filter();
    trying();
    copying();
    if ("live" in document.body.dataset) reloading();
  });
})();
