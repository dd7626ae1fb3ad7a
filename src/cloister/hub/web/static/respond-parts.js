// What the parts of the respondent's page share: its words, and small ways to write on it.

export const words = document.getElementById("words")?.dataset ?? {};
export const at = (id) => document.getElementById(id);
export const fill = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);

export const make = (tag, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

/** Three digits, rounded up: a page never promises more than the integers do. (1e-9: what a double may be off by is no digit.) */
export const short = (number) => {
  if (!Number.isFinite(number)) return "∞";
  const unit = number > 0 ? 10 ** (Math.floor(Math.log10(number)) - 2) : 1;
  return String(Number((Math.ceil((number / unit) * (1 - 1e-9)) * unit).toPrecision(3)));
};

export const show = (section, heading) => {
  section.hidden = false;
  section.scrollIntoView({ block: "start" });
  heading?.focus({ preventScroll: true });
};
