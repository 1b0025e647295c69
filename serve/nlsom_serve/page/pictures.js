// Pictures to send: chosen, dropped or pasted, kept as data URLs.

import { $, element } from "./dom.js";

export class Pictures {
  constructor(changed) {
    this.urls = [];
    this.changed = changed;
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
    for (const file of files) {
      if (file.type.startsWith("image/")) this.urls.push(await read(file));
    }
    this.show();
  }

  clear() {
    this.urls = [];
    this.show();
  }

  show() {
    $("pictures").replaceChildren(
      ...this.urls.map((url, at) => {
        const remove = element("button", { type: "button", text: "Remove", "aria-label": `Remove picture ${at + 1}` });
        remove.addEventListener("click", () => {
          this.urls.splice(at, 1);
          this.show();
        });
        return element("li", {}, element("img", { src: url, alt: `Picture ${at + 1}` }), remove);
      }),
    );
    this.changed?.();
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
