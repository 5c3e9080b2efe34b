// Runs before the first paint, so that a chosen theme never flashes through the other one.
(function () {
  var chosen = localStorage.getItem("torchyard-theme");
  var dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
