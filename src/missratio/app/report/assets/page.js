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

  document.getElementById("download").addEventListener("click", () => {
    const text = document.getElementById("data-report").textContent;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "report.json";
    link.click();
    URL.revokeObjectURL(link.href);
  });

  if (window.vegaEmbed) draw();
  else root.classList.add("no-figures");
})();
