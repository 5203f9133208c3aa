"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const root = document.documentElement;
  root.classList.add("scripted");

  // Figures, one after the other; each place has its height already.
  const views = new Map();
  const draw = async () => {
    for (const [key, spec] of Object.entries(read("data-figures"))) {
      const place = document.getElementById(key);
      try {
        const { view } = await vegaEmbed(place, spec, {
          actions: false,
          renderer: "svg",
          loader: { http: null, file: null },
          tooltip: { theme: "custom" },
        });
        views.set(key, view);
        if (view.signal && key.match(/^figure-(roc|scores)$/)) move(view);
      } catch (error) {
        place.textContent = "This figure could not be drawn; its table has the numbers.";
        console.error(error);
      }
    }
    root.dataset.drawn = "yes";
  };

  // The slider moves the threshold, what is certified, and the power together.
  const levels = read("data-levels");
  const slider = document.getElementById("alpha");
  const own = Number(slider.dataset.own);
  const back = document.getElementById("back");
  const move = (view) => view.signal("chosen", Number(slider.value)).runAsync();
  const update = () => {
    const level = levels[slider.value];
    for (const [name, text] of Object.entries(level)) {
      const place = document.getElementById(`level-${name}`);
      if (place) place.textContent = text;
    }
    slider.setAttribute("aria-valuetext", `${level.alpha}, power ${level.power}`);
    back.disabled = Number(slider.value) === own;
    for (const key of ["figure-roc", "figure-scores"]) {
      if (views.has(key)) move(views.get(key));
    }
  };
  slider.addEventListener("input", update);
  back.addEventListener("click", () => {
    slider.value = own;
    update();
    slider.focus();
  });
  slider.value = own;
  update();

  document.getElementById("download").addEventListener("click", () => {
    const link = document.createElement("a");
    const text = document.getElementById("data-report").textContent;
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "report.json";
    link.click();
    URL.revokeObjectURL(link.href);
  });

  if (window.vegaEmbed) draw();
  else root.classList.add("no-figures");
})();
