// Pictures to send: chosen, dropped or pasted, as data URLs. They are kept for the next question until others are added.

import { $, element, problem } from "./dom.js";

export class Pictures {
  constructor() {
    this.urls = [];
    this.asked = false;
    $("files").addEventListener("change", () => {
      this.add($("files").files);
      $("files").value = "";
    });
    const drop = $("drop");
    for (const kind of ["dragover", "dragenter"]) {
      drop.addEventListener(kind, (event) => {
        event.preventDefault();
        drop.classList.add("over");
      });
    }
    drop.addEventListener("dragleave", () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => {
      event.preventDefault();
      drop.classList.remove("over");
      this.add(event.dataTransfer.files);
    });
    document.addEventListener("paste", (event) => this.add(event.clipboardData.files));
  }

  async add(files) {
    const images = [...files].filter((file) => file.type.startsWith("image/"));
    const others = [...files].filter((file) => !images.includes(file)).map((file) => file.name);
    if (files.length) problem("problem", others.length ? `Not a picture: ${others.join(", ")}.` : "");
    if (!images.length) return;
    const urls = await Promise.all(images.map(read));
    this.put(this.asked ? urls : [...this.urls, ...urls]);
  }

  /** Keeps the pictures that were sent; those added from now on replace them. */
  keep(sent) {
    if (this.urls !== sent || !sent.length) return; // others were added meanwhile
    this.asked = true;
    this.show();
  }

  /** Replaces the pictures by those of a past question. */
  async reuse(blobs) {
    this.put(await Promise.all(blobs.map(read)), true);
  }

  put(urls, asked = false) {
    this.urls = urls;
    this.asked = asked && urls.length > 0;
    this.show();
  }

  show() {
    $("pictures").replaceChildren(
      ...this.urls.map((url, at) => {
        const remove = element("button", { type: "button", text: "Remove", "aria-label": `Remove picture ${at + 1}` });
        remove.addEventListener("click", () => this.put(this.urls.filter((_, other) => other !== at), this.asked));
        return element("li", {}, element("img", { src: url, alt: `Picture ${at + 1}` }), remove);
      }),
    );
    $("kept").hidden = !this.asked;
  }
}

function read(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
