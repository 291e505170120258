"""`python -m scripts.pages` renders README.md and docs/ again and prints the files that changed."""

from scripts.pages.render import ROOT, rendered

if __name__ == "__main__":
    for path, text in rendered().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(ROOT))
