"use strict";
// Search in a site that is opened from files: browsers refuse workers there, so what would be a worker runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.document.open();
      this.inside.document.write(`<body><script>postMessage = (data) => parent.postMessage(data, "*");<\/script><script src="${url}"><\/script></body>`);
      this.inside.document.close();
      this.loaded = new Promise((done) => { this.inside.onload = done; });
      window.addEventListener("message", (event) => {
        if (event.source === this.inside) this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      });
    }
    postMessage(data) {
      this.loaded.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })));
    }
  };
}
