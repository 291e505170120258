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

  const opened = (element) => {
    for (let part = element; part; part = part.parentElement) if (part.matches("details")) part.open = true;
  };

  // Plain text of an element: a formula as it was typed.
  const plain = (element) => {
    const copy = element.cloneNode(true);
    for (const formula of copy.querySelectorAll("math[alttext]")) formula.replaceWith(formula.getAttribute("alttext"));
    return copy.textContent.replace(/\s+/g, " ").trim();
  };

  // How well a row fits a query, 0 is best: title before text, the phrase before its words.
  const rank = (query) => {
    const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const whole = (text) => new RegExp(`(?<![\\p{L}\\d])${escaped(text)}(?![\\p{L}\\d]|\\.\\d)`, "u");
    const phrase = whole(query);
    const words = query.split(" ").map((word) => new RegExp(`(?<![\\p{L}\\d])${escaped(word)}`, "u"));
    const degrees = (text, line) => [
      (text.match(phrase) || {}).index === 0, phrase.test(text), text.includes(query), words.every((word) => word.test(line)),
    ];
    return ({ title, line, text }) => [...degrees(title, title), ...degrees(text, line)].indexOf(true);
  };

  // What is shown: of which paper, of which kind, with which verdict. Words are searched. The URL keeps both.
  const filter = () => {
    const fields = { q: "filter", paper: "of-paper", kind: "of-kind" };
    const box = Object.fromEntries(Object.entries(fields).map(([key, id]) => [key, document.getElementById(id)]));
    const [count, results, found] = ["count", "results", "found"].map((id) => document.getElementById(id));
    const buttons = [...document.querySelectorAll("[data-show]")];
    const rows = [...document.querySelectorAll("[data-kind]")];
    const holders = [...document.querySelectorAll("[data-hides]")].reverse(); // the inner ones first
    const total = rows.filter((row) => "statement" in row.dataset).length;
    const texts = [...document.querySelectorAll("details.row, .claim-row, .waiting > li")].map((row) => {
      const figure = row.matches(".claim-row") && row.closest(".figure");
      const said = row.querySelector(":scope > summary") || row;
      return {
        row, figure, title: (row.dataset.title || "").toLowerCase(),
        line: plain(row.matches(".figure") ? said.querySelector(".title") : row.matches(".row") ? said : row.querySelector(".claim") || row).toLowerCase(),
        text: plain(row.matches(".figure") ? row.querySelector(".caption") || said.querySelector(".title") : row).toLowerCase(),
        shown: `${figure ? figure.dataset.title.split(":")[0] + ": " : ""}${row.dataset.title || plain(row.querySelector(".claim") || row)}`,
      };
    });
    let verdict = "";
    const kept = () => {
      const chosen = { q: box.q.value.trim(), paper: box.paper ? box.paper.value : "", kind: box.kind.value, verdict };
      const query = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value)).toString();
      try {
        history.replaceState(null, "", (query ? "?" + query : location.pathname) + location.hash);
      } catch { /* a browser may refuse it to pages from disk */ }
    };
    const search = () => {
      const query = box.q.value.toLowerCase().trim().replace(/\s+/g, " ");
      results.hidden = !query;
      if (!query) return;
      const ranked = rank(query);
      const fits = texts.filter(({ row }) => !row.closest("[hidden]")).map((item) => [ranked(item), item])
        .filter(([degree]) => degree >= 0).sort(([a], [b]) => a - b);
      const titled = fits.filter(([degree]) => degree < 4).length;
      found.textContent = fits.length ? `${fits.length} found, ${titled} by title` : "nothing found";
      results.querySelector("ol").replaceChildren(...fits.map(([degree, { row, shown }]) => {
        const [item, link, paper] = ["li", "a", "span"].map((tag) => document.createElement(tag));
        link.href = "#" + row.id;
        link.textContent = shown;
        paper.className = "small";
        paper.textContent = ` ${row.dataset.paper}${row.dataset.kind ? ", " + (row.dataset.kind === "fails" ? "false" : row.dataset.kind) : ""}`;
        item.dataset.degree = String(degree);
        item.append(link, paper);
        return item;
      }));
    };
    const apply = () => {
      const paper = box.paper ? box.paper.value : "";
      const kind = box.kind.value;
      const fits = ({ dataset }) => (!verdict || dataset.kind === verdict || (verdict === "unexpected" && "unexpected" in dataset))
        && (!paper || dataset.paper === paper) && (!kind || dataset.of === kind);
      let shown = 0;
      for (const row of rows) {
        row.hidden = !fits(row);
        shown += !row.hidden && "statement" in row.dataset ? 1 : 0;
      }
      for (const holder of holders) {
        const inside = [...holder.querySelectorAll("[data-kind]")];
        holder.hidden = inside.length > 0 && inside.every((row) => row.hidden);
      }
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.show === verdict));
      count.textContent = shown === total ? `${total} statements` : `${shown} of ${total} statements`;
      search();
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
    box.q.addEventListener("focus", search);
    addEventListener("keydown", (event) => { if (event.key === "Escape") results.hidden = true; });
    addEventListener("click", (event) => { if (!event.target.closest(".search")) results.hidden = true; });
    // A link must not lead to what is filtered away, and opens the evidence.
    const arrived = () => {
      const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (!target) return;
      if (target.closest("[hidden]")) {
        for (const field of [box.paper, box.kind]) if (field) field.value = "";
        verdict = "";
        apply();
      }
      results.hidden = true;
      opened(target);
      target.scrollIntoView();
    };
    addEventListener("hashchange", arrived);
    addEventListener("click", (event) => { // a link to where the page already is
      const link = event.target.closest("a[href^='#']");
      if (link && link.getAttribute("href") === location.hash) arrived();
    });
    apply();
    results.hidden = true;
    if (location.hash) arrived();
  };

  // All at once, by a button; on paper everything is open.
  const opening = () => {
    const button = document.getElementById("all");
    const every = () => [...document.querySelectorAll("main details")];
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-pressed") !== "true";
      for (const part of every()) part.open = open;
      button.setAttribute("aria-pressed", String(open));
      button.textContent = open ? "Close all" : "Open all";
    });
    let closed = [];
    addEventListener("beforeprint", () => {
      closed = every().filter((part) => !part.open);
      for (const part of closed) part.open = true;
    });
    addEventListener("afterprint", () => { for (const part of closed) part.open = false; });
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
    for (const image of document.querySelectorAll("img")) image.loading = "eager";
  };

  addEventListener("load", () => setTimeout(pictures, 1000));
  document.addEventListener("DOMContentLoaded", () => {
    theme();
    filter();
    opening();
    copying();
    if ("live" in document.body.dataset) reloading();
  });
})();
