// Helpers for the document. Text is always set as text: nothing that members say is ever parsed as HTML.

export const $ = (id) => document.getElementById(id);

export function element(tag, { text, className, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function problem(id, message) {
  $(id).textContent = message;
  $(id).hidden = !message;
}
