"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const root = document.documentElement;
  root.classList.add("scripted");

  // Figures, one after the other; each place has its height already.
  const views = new Map();
  const draw = async () => {
    for (const place of document.querySelectorAll(".chart")) {
      const key = place.id;
      try {
        const { view } = await vegaEmbed(place, read(`${key}-spec`), {
          mode: "vega-lite",
          actions: false,
          renderer: "svg",
          loader: { http: null, file: null },
          tooltip: { theme: "custom" },
        });
        views.set(key, view);
        if (key === "figure-levels") move(view);
      } catch (error) {
        place.textContent = "This figure could not be drawn; its table has the numbers.";
        console.error(error);
      }
    }
    root.dataset.drawn = "yes";
  };

  // The slider moves the threshold, what is certified, and the power together.
  const slider = document.getElementById("alpha");
  const move = (view) => view.signal("chosen", Number(slider.value)).runAsync();
  const slide = () => {
    const levels = document.querySelectorAll("#levels tbody tr");
    const names = ["alpha", "threshold", "bound", "estimate", "power", "interval"];
    const own = Number(slider.dataset.chosen);
    const back = document.getElementById("back");
    const update = () => {
      const cells = levels[slider.value].cells;
      for (const [k, name] of names.entries()) {
        document.getElementById(`level-${name}`).textContent = cells[k].textContent;
      }
      slider.setAttribute("aria-valuetext",
        `${cells[0].textContent}, power ${cells[4].textContent}`);
      back.disabled = Number(slider.value) === own;
      if (views.has("figure-levels")) move(views.get("figure-levels"));
    };
    slider.addEventListener("input", update);
    back.addEventListener("click", () => {
      slider.value = own;
      update();
      slider.focus();
    });
    slider.value = own;
    update();
  };
  if (slider) slide();

  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  document.getElementById("download").addEventListener("click", () => {
    const text = document.getElementById("data-report").textContent;
    save(new Blob([text], { type: "application/json" }), "report.json");
  });

  // A figure that leaves the page takes its colours and its ground along.
  const drawn = async (key) => {
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(name).trim();
    const text = (await views.get(key).toSVG()).replace(
      /var\((--[a-z]+)\)/g, (_, name) => colour(name));
    return text.replace(/(<svg[^>]*>)/,
      `$1<rect width="100%" height="100%" fill="${colour("--page")}"/>`);
  };
  const painted = (text, scale) => new Promise((done, fail) => {
    const image = new Image();
    image.onerror = fail;
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = scale * image.width;
      canvas.height = scale * image.height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(done, "image/png");
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  });
  for (const button of document.querySelectorAll("[data-save]")) {
    button.addEventListener("click", async () => {
      const { save: kind, figure } = button.dataset;
      if (!views.has(figure)) return;
      const text = await drawn(figure);
      const blob = kind === "svg"
        ? new Blob([text], { type: "image/svg+xml" }) : await painted(text, 2);
      save(blob, `${figure.replace("figure-", "")}.${kind}`);
    });
  }

  if (window.vegaEmbed) draw();
  else root.classList.add("no-figures");
})();
