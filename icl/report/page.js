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

  const filter = () => {
    const box = document.getElementById("filter");
    const count = document.getElementById("count");
    const buttons = [...document.querySelectorAll("[data-show]")];
    const rows = [...document.querySelectorAll("tbody[data-kind]")];
    const groups = [...document.querySelectorAll("tbody[data-group]")];
    const titles = new Map(groups.map((group) => [group.dataset.group, group.textContent]));
    const text = new Map(rows.map((row) => {
      return [row, ((titles.get(row.dataset.of) || "") + " " + row.textContent).toLowerCase()];
    }));
    let kind = "";
    const apply = () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (row) => !kind || row.dataset.kind === kind || (kind === "unexpected" && "unexpected" in row.dataset);
      let shown = 0;
      for (const row of rows) {
        row.hidden = !(fits(row) && words.every((word) => text.get(row).includes(word)));
        shown += row.hidden ? 0 : 1;
      }
      for (const group of groups) {
        group.hidden = !rows.some((row) => row.dataset.of === group.dataset.group && !row.hidden);
      }
      for (const paper of document.querySelectorAll("section.paper")) {
        paper.hidden = !paper.querySelector("tbody[data-kind]:not([hidden])");
      }
      count.textContent = shown === rows.length ? `${shown} statements` : `${shown} of ${rows.length} statements`;
    };
    for (const button of buttons) {
      button.addEventListener("click", () => {
        kind = button.dataset.show;
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
        apply();
      });
    }
    box.addEventListener("input", apply);
    // A link from above must not lead to a row that is filtered away.
    addEventListener("hashchange", () => {
      const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (!target || !target.closest("[hidden]")) return;
      box.value = "";
      buttons[0].click();
      target.scrollIntoView();
    });
    apply();
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
    const idle = () => scrollY < 200 && !location.hash && !document.querySelector("details[open], [data-show='']:not([aria-pressed='true'])")
      && !document.getElementById("filter").value && getSelection().isCollapsed && !document.hidden;
    if (!fresh()) return;
    document.getElementById("reload-hint").textContent = "It reloads by itself while it is scrolled to the top.";
    setInterval(() => { if (idle() && fresh()) location.reload(); }, 5000);
  };

  document.addEventListener("DOMContentLoaded", () => {
    theme();
    filter();
    copying();
    if ("live" in document.body.dataset) reloading();
  });
})();
