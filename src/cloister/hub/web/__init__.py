"""How pages look and speak: one design of our own, two languages, no request to another host, no script in a page.

- `render.py`: a template and its values become a page, with what every template can use; files with an address that changes with
  them. `formats.py`: how numbers, times and guarantees are written. `languages.py`: texts in the reader's language; words of the
  database, for people.
- `forms.py`: what a page posts, checked against forgery, and one sentence for the page after it.
- `home.py`: the first page, and the choices of look and language.
- `templates/macros/`: the parts that pages are made of. `static/`: one style sheet, one script, one file of icons.

Everything works without scripts; `static/page.js` only makes it quicker.
"""
