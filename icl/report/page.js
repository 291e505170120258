(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  const id = (name) => document.getElementById(name);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  // A browser may refuse storage to pages from disk.
  const stored = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("icl-theme");
      localStorage.setItem("icl-theme", value);
    } catch { /* the choice lasts as long as the page */ }
    return null;
  };
  if (["dark", "light"].includes(stored())) root.dataset.theme = stored();

  const theme = () => {
    const system = matchMedia("(prefers-color-scheme: dark)");
    const dark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
    const show = () => { id("theme").textContent = dark() ? "Light" : "Dark"; };
    id("theme").addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      stored(root.dataset.theme);
      show();
    });
    system.addEventListener("change", show);
    show();
  };

  const plain = (element) => element.textContent.replace(/\s+/g, " ").toLowerCase();

  // Rows with this verdict and these words are shown, and their papers opened. The URL keeps both.
  const filter = () => {
    const buttons = all("[data-show]");
    const rows = all("[data-kind]");
    const holders = all("[data-hides]").reverse(); // the inner ones first
    const papers = all("details.paper");
    const open = new Set(papers.filter((paper) => paper.open));
    const words = new Map(rows.map((row) => [row, plain(row) + plain(row.closest(".figure")?.querySelector(".title") || row)]));
    const total = rows.filter((row) => row.dataset.kind !== "open").length;
    let verdict = "";
    const apply = () => {
      const asked = id("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = (row) => (!verdict || row.dataset.kind === verdict || (verdict === "unexpected" && "unexpected" in row.dataset))
        && asked.every((word) => words.get(row).includes(word));
      for (const row of rows) row.hidden = !fits(row);
      for (const holder of holders) {
        const inside = all("[data-kind]", holder);
        holder.hidden = inside.length > 0 && inside.every((row) => row.hidden);
      }
      for (const paper of papers) paper.open = verdict || asked.length ? !paper.hidden : open.has(paper);
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.show === verdict));
      const shown = rows.filter((row) => !row.hidden && row.dataset.kind !== "open").length;
      id("count").textContent = shown === total ? `${total} statements` : `${shown} of ${total} statements`;
      const query = new URLSearchParams(Object.entries({ q: asked.join(" "), verdict }).filter(([, value]) => value)).toString();
      try {
        history.replaceState(null, "", (query ? "?" + query : location.pathname) + location.hash);
      } catch { /* a browser may refuse it to pages from disk */ }
    };
    // A link must not lead to what is filtered away or folded.
    const arrived = () => {
      const target = id(decodeURIComponent(location.hash.slice(1)));
      if (!target) return;
      if (target.closest("[hidden]")) {
        id("filter").value = verdict = "";
        apply();
      }
      for (let part = target; part; part = part.parentElement) if (part.matches("details")) part.open = true;
      target.scrollIntoView();
    };
    const given = new URLSearchParams(location.search);
    id("filter").value = given.get("q") || "";
    if (buttons.some((button) => button.dataset.show === given.get("verdict"))) verdict = given.get("verdict");
    for (const button of buttons) {
      button.addEventListener("click", () => {
        verdict = button.dataset.show;
        apply();
      });
    }
    id("filter").addEventListener("input", apply);
    addEventListener("hashchange", arrived);
    addEventListener("click", (event) => { // a link to where the page already is
      const link = event.target.closest("a[href^='#']");
      if (link && link.getAttribute("href") === location.hash) arrived();
    });
    apply();
    if (location.hash) arrived();
  };

  // All at once, by a button; on paper everything is open.
  const opening = () => {
    const button = id("all");
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-pressed") !== "true";
      for (const part of all("main details")) part.open = open;
      button.setAttribute("aria-pressed", String(open));
      button.textContent = open ? "Close all" : "Open all";
    });
    let closed = [];
    addEventListener("beforeprint", () => {
      closed = all("main details:not([open])");
      for (const part of closed) part.open = true;
    });
    addEventListener("afterprint", () => { for (const part of closed) part.open = false; });
  };

  const copying = () => {
    for (const button of all("[data-copy]")) {
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

  // Pictures load as they are scrolled to; paper has no scrolling, so that all load at leisure.
  addEventListener("load", () => setTimeout(() => { for (const image of document.images) image.loading = "eager"; }, 1000));
  document.addEventListener("DOMContentLoaded", () => {
    theme();
    filter();
    opening();
    copying();
  });
})();
